"""The guards in the statements that change a job's status are the sources in the table of moves."""

import re
from typing import Any

import pytest
from store.rig import Ticker
from store.sqlite.test_schema import BURIED, CANCELLED, DONE, EXPIRED, FAILED, HELD, WAITING

from zq.model.lifecycle import MOVES, Move, Status, sources
from zq.store.api import as_json
from zq.store.sqlite.queries import load

KEY = 16

# A job in each state.
ROWS = {
    Status.SCHEDULED: FAILED,
    Status.READY: WAITING | {"deliveries": 1, "dequeued_at": 3},
    Status.IN_FLIGHT: HELD,
    Status.COMPLETED: DONE,
    Status.DEAD: BURIED,
    Status.CANCELLED: CANCELLED | {"swept": 1},
    Status.EXPIRED: EXPIRED,
}

# Statement that sets a status → the move that it makes.
MAKES = {
    "promote": Move.PROMOTE,
    "change": Move.PATCH,
    "take": Move.TAKE,
    "take_on_terms": Move.TAKE,
    "release": Move.RELEASE,
    "stall": Move.STALL,
    "resume": Move.RESUME,
    "give_back": Move.RETURN,
    "give_back_all": Move.RETURN,
    "complete": Move.SUCCEED,
    "complete_with_results": Move.SUCCEED,
    "fail": Move.FAIL,
    "bury": Move.BURY,
    "revive": Move.REVIVE,
    "expire": Move.EXPIRE,
    "cancel": Move.CANCEL,
    "cancel_by_force": Move.FORCE,
    "undo": Move.UNDO,
}


def queries() -> dict[str, str]:
    files = ("tick", "claims", "upkeep", "log")
    return {name: sql for file in files for name, sql in load(f"zq.store.sqlite.{file}").items()}


def parameters(name: str, start: Status, end: Status) -> dict[str, Any]:
    """What a statement wants to know, to bring the one job from `start` to `end`."""
    return {
        "keys": as_json([KEY]),
        "now": 9,
        "steady": 9,
        "purges": as_json({KEY: 10}),
        "ends": as_json([[KEY, 10, None]]),
        "restored": as_json([[KEY, end, "q"]]),
        "completions": as_json([[KEY, 10, 4, "null"]]),
        "verdicts": as_json([[KEY, 2, 9]]),
        "graves": as_json([[KEY, 10, None]]),
        "revivals": as_json([[KEY, start, "q", None, None, None]]),
        "holders": as_json({KEY: ROWS[start].get("holder") or 1}),
        "leases": as_json([[KEY, 0, "c", 20]]),
        "claimants": as_json({KEY: "c"}),
        "times": as_json([[KEY, 9 if end is Status.SCHEDULED else None]]),
        "changes": as_json([[KEY, "q", 1, end, 9, None]]),
    }


def run(ticker: Ticker, name: str, start: Status, end: Status) -> Status | None:
    """The status that the statement gives to a job in `start`; None where it leaves the job."""
    connection = ticker.sqlite
    connection.execute("DELETE FROM jobs")
    row = ROWS[start] | {"id": KEY}
    marks = ", ".join(f":{column}" for column in row)
    connection.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({marks})", row)
    sql = queries()[name]
    known = parameters(name, start, end)
    wanted = {word: known[word] for word in re.findall(r":([a-z_]+)", sql)}
    if not connection.execute(sql, wanted).rowcount:
        return None
    return Status(ticker.value("SELECT status FROM jobs"))


def test_every_statement_that_sets_a_status_is_known() -> None:
    setting = set()
    for name, sql in queries().items():
        assignments = re.match(r"UPDATE (?:OR \w+ )?jobs\s+SET (.*?)\b(?:FROM|WHERE)\b", sql, re.S)
        if assignments and re.search(r"\bstatus =", assignments[1]):
            setting.add(name)
    assert setting == MAKES.keys()
    assert set(MAKES.values()) == set(Move)


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("start", Status)
def test_a_statement_moves_a_job_exactly_where_the_table_lets_it(
    ticker: Ticker, name: str, start: Status
) -> None:
    legal = MOVES[MAKES[name]].get(start, frozenset())
    # From where the move is not legal, even its own ends must not be reached.
    ends = legal or {end for table in MOVES[MAKES[name]].values() for end in table}
    reached = {run(ticker, name, start, end) for end in ends}
    assert reached == (legal or {None})


def test_a_lease_ends_only_by_the_holder_that_is_named(ticker: Ticker) -> None:
    assert run(ticker, "give_back", Status.IN_FLIGHT, Status.READY) is Status.READY
    ticker.sqlite.execute("DELETE FROM jobs")
    row = HELD | {"holder": 2}
    marks = ", ".join(f":{column}" for column in row)
    ticker.sqlite.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({marks})", row)
    sql = queries()["give_back"]
    assert ticker.sqlite.execute(sql, {"holders": as_json({KEY: 1})}).rowcount == 0


def test_the_states_of_the_test_are_all_there_are() -> None:
    assert ROWS.keys() == set(Status)
    assert all(row["status"] is status for status, row in ROWS.items())
    assert all(sources(move) for move in Move)
