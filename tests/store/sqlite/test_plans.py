"""Query plans: the index of each query, and which query each index is there for."""

from collections.abc import Iterator

import pytest
from rooms import of_room

from zq.model.commands import Claim, SetQueue, Succeed
from zq.model.filters import EVERYTHING, Filter, ValueRange, is_counted
from zq.model.job import Retention
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE
from zq.model.settings import NO_SETTINGS, QueueSettings
from zq.model.settling import Completion, Ending
from zq.model.unique import Scope
from zq.store import lookups
from zq.store.sqlite.queries import load, load_of_rooms
from zq.store.sqlite.snapshot import CORE

from ..rig import FOREVER, NOW, Ticker, new_job
from .backlog import (
    CANCELLED,
    COMPLETED,
    DEAD,
    EXPIRED,
    HOUR_MS,
    IN_FLIGHT,
    NEWER,
    QUEUES,
    READY,
    SCHEDULED,
    alike,
    fill,
    plan,
    plans_of,
)
from .plans import BY_ID, CLAIM_ANY, CLAIM_QUEUE, FIRST_SCHEDULED, SORTED
from .plans import FINDS as OF_CORE

OF_ROOMS = of_room("doors.topics", "plans")
"""What the tests of rooms know of the plans of their statements."""

FINDS = OF_CORE.copy()
for _room in OF_ROOMS:
    FINDS |= _room.FINDS
if NEWER:
    # It sorts the few types of an error, and knows that records come in order.
    FINDS["write_error_groups"] = {SORTED}
    for _page in FINDS.keys() & {"look for topic fitting"}:
        FINDS[_page] = FINDS[_page] - {SORTED}

# Its arms are filled in when it runs; what becomes of it is traced below.
COMPOSED = {"claim_merged", "lines_merged"}

# Partial index → a query that it is there for.
SERVES = {
    "aged_lines": "misplaced",
    "open_lines": "open_lines",
    "open_lines_of_queue": "line_arm",
    "shut_lines": "open_shut",
    "shared_lines": "shared_lines",
    "jobs_of_line": "jobs_in_line",
    "ready_by_priority": "claim_any",
    "ready_by_queue": "claim_arm",
    "idle_shares": "pass_shares",
    "shares_by_opening": "read_opening",
    "scheduled_by_date": "read_due",
    "scheduled_by_wait": "read_waited",
    "purgeable": "read_purgeable",
    "not_ready": "read_left_in_flight",
    "key_owner": "read_owners",
    "trimmable": "to_be_trimmed",
    "leases_by_deadline": "read_overdue",
    "expiring": "read_lapsed",
    "unfinished_of_group": "open_groups",
    "budgets_by_time": "deadlines",
    "cron_by_time": "next_firing",
    "topics_to_trim": "topics_to_trim",
    "pauses_by_end": "read_ended_pauses",
    "records_by_tag": "records_tagged",
    "topic_jobs_by_tag": "look for record tagged",
}


OF_USERS = frozenset(load("zq.doors.queue_ti.sqlite_tick"))
"""There are few users: their statements may go through all of them."""

OF_READERS = {"scheduled_by_time", "heads_of_lines"}
"""Indexes for windows and counts of readers: `test_windows` and tests below know their plans."""


@pytest.fixture(scope="module")
def ticker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ticker]:
    ticker = Ticker(tmp_path_factory.mktemp("plans") / "zq.db")
    fill(ticker, 3_000)
    yield ticker
    ticker.close()


def named_queries() -> dict[str, str]:
    found = load_of_rooms()
    for name in ("failures", "producers", "sweeps", "trends", "waits"):
        found |= load(f"zq.features.{name}.sqlite_reads")
    looks = load("zq.store.sqlite.lookups")
    found |= {name: looks[name] for name in ("leases", "due_between")}
    for file in ("tick", "upkeep", "settings", "log", "claims", "lines"):
        found |= load(f"zq.store.sqlite.{file}")
    found = {name: sql for name, sql in found.items() if name not in OF_USERS}
    for room in OF_ROOMS:
        found |= room.named()
    scheduled = ("scheduled_beside", "scheduled_beyond", "waiting_beside", "waiting_beyond")
    for name in ("leases", "running_long", *scheduled):
        found[name] = found[name].replace("CONDITIONS", "true")
    of_backlog = load("zq.features.backlog.sqlite_reads")
    found |= {f"backlog: {name}": sql for name, sql in of_backlog.items()}
    of_crons = load("zq.features.crons.sqlite_reads")
    found |= {f"look for cron {name}": sql for name, sql in of_crons.items()}
    found["look for schemas"] = load("zq.features.schemas.sqlite_reads")["schemas"]
    found["look for note"] = looks["note"]
    found["append"] = found["append"].replace("SOURCE", "SELECT 1 AS n, '[]' AS records")
    return {name: sql.replace("NAMES", ":one, :other") for name, sql in found.items()}


@pytest.mark.parametrize("name", FINDS)
def test_a_named_query_finds_its_rows_by_the_index_made_for_it(ticker: Ticker, name: str) -> None:
    assert set(plan(ticker.connection, named_queries()[name])) == set(alike(FINDS[name]))


def test_the_plan_of_every_query_is_known() -> None:
    assert set(named_queries()) == FINDS.keys() | COMPOSED


def test_no_named_query_sorts_or_visits_all_jobs() -> None:
    # The heads of queues are sorted: there are as many as queues, however many jobs wait.
    # Of cron, each queue is told of once.
    heads = {
        "first_heads",
        "first_line_queues",
        "name_lines",
        "lines_of_jobs",
        "look for cron queues",
    }
    # So are jobs in flight or given back at a start, and what is left after damage.
    heads |= {
        "return_in_use",
        "return_draws",
        *("note_lost_budgets", "make_lost_budgets", "make_lost_shares"),
        "lines_of_names",
        "count_returned",
        "count_draws",
        "read_begun",
        "return_shares",
        "count_shares",
    }
    # A bounded number of jobs for each queue and priority is merged.
    heads |= {"claim_span"}
    # A bounded number of jobs in flight is sorted by how long they run.
    heads |= {"running_long"}
    # A bounded number of counts is added up by their groups, or by their types.
    heads |= {"failures_since", "type_trends"}
    # The few types of an error are sorted by newer SQLites.
    heads |= {"write_error_groups"}
    # A bounded number of lines is sorted as claims have them.
    heads |= {"backlog: lines"}
    heads = heads.union(*(room.SORTS for room in OF_ROOMS))
    # A bounded number of jobs that are due is sorted by how urgent they are.
    heads |= {"read_due", "read_due_briefs", "read_waited", "read_waited_briefs"}
    lines = {line for name, lines in FINDS.items() if name not in heads for line in lines}
    in_order_up_to_a_limit = {CLAIM_ANY, FIRST_SCHEDULED}
    for line in lines - in_order_up_to_a_limit:
        assert "TEMP B-TREE" not in line
        assert not line.startswith("SCAN jobs")


def test_every_partial_index_serves_a_query(ticker: Ticker) -> None:
    sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%WHERE%'"
    assert {name for (name,) in ticker.connection.execute(sql)} == set(SERVES) | OF_READERS
    # The migrations keep the tables, with their indexes, of a room that is gone.
    served = {index: query for index, query in SERVES.items() if query in FINDS}
    for index, query in served.items():
        lines = plan(ticker.connection, named_queries()[query])
        assert any(f"INDEX {index}" in line for line in lines), (index, lines)


@pytest.mark.parametrize("count", [1, 3, 30, 499])
def test_a_claim_merges_the_heads_of_its_queues_without_sorting(ticker: Ticker, count: int) -> None:
    queues = tuple(f"q{number:02}" for number in range(count))
    claim = Claim(queues, [(1, 0)])
    assert plans_of(ticker, lambda: ticker.run(claims=[claim])) == [[CLAIM_QUEUE] * count + [BY_ID]]


def test_a_claim_through_gates_from_named_queues_visits_the_open_ones_alone(ticker: Ticker) -> None:
    for name in QUEUES[5:]:
        ticker.run(SetQueue(name, QueueSettings(paused=True)))
    for name in QUEUES[3:5]:
        ticker.run(SetQueue(name, QueueSettings(concurrency=10_000)))
    lines = plans_of(ticker, lambda: ticker.run(claims=[Claim(QUEUES, [(1, 0)])]))
    for name in QUEUES[3:]:
        ticker.run(SetQueue(name, NO_SETTINGS))
    (merge,) = [part for part in lines if CLAIM_QUEUE in part]
    assert merge.count(CLAIM_QUEUE) == 5
    # What a bound lets through is sorted again, and that is little.
    assert set(merge) <= {CLAIM_QUEUE, BY_ID, SORTED}


def test_a_claim_of_more_queues_than_one_statement_merges_takes_several(ticker: Ticker) -> None:
    queues = tuple(f"q{number:02}" for number in range(700))
    lines = plans_of(ticker, lambda: ticker.run(claims=[Claim(queues, [(1, 0)])]))
    assert [set(part) for part in lines] == [{CLAIM_QUEUE, BY_ID}, {CLAIM_QUEUE, BY_ID}]
    assert sum(part.count(CLAIM_QUEUE) for part in lines) == 700


@pytest.mark.parametrize("count", [1, 3, 700])
def test_the_owners_of_unique_keys_are_found_by_their_keys(ticker: Ticker, count: int) -> None:
    unique = {"unique_while": Scope.EXISTS}
    enqueue = ticker.enqueue(new_job(unique_key=f"key {i * 5}", **unique) for i in range(count))
    for lines in plans_of(ticker, lambda: ticker.run(enqueue)):
        assert lines == ["SEARCH jobs USING INDEX key_owner (key_lock=?)"]


def test_a_job_is_looked_up_by_the_key_that_it_owns(ticker: Ticker) -> None:
    (lines,) = plans_of(ticker, lambda: lookups.get_owner(ticker.core, "key 5", EVERYWHERE, NOW))
    assert lines == ["SEARCH jobs USING INDEX key_owner (key_lock=?)"]


def test_a_result_is_found_by_the_id_of_its_job(ticker: Ticker) -> None:
    (key,) = ticker.take(1)
    told = Completion(f'"{"x" * 600}"', 602, Retention(completed_ms=HOUR_MS))
    ticker.run(Succeed([key], said={key: told}))
    statements: list[str] = []
    ticker.connection.set_trace_callback(statements.append)
    found = lookups.get_ending(ticker.core, key, EVERYWHERE, NOW)
    ticker.connection.set_trace_callback(None)
    assert found == Ending(COMPLETED, told.result)
    selects = [sql for sql in statements if sql.startswith("SELECT")]
    job, body = [plan(ticker.connection, sql) for sql in selects]
    assert job == ["SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)"]
    assert body == ["SEARCH results USING INTEGER PRIMARY KEY (rowid=?)"]


# Filter → how a listing in id order finds its jobs; `<` stands for `>` when descending.
LISTINGS = [
    (EVERYTHING, "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(statuses=(READY,)), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(queues=("q01",)), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(types=("t",)), "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
    (Filter(keys=(16, 32)), BY_ID),
    (Filter(keys=(16, 32), statuses=(READY,)), BY_ID),
    *(
        (filter, "SEARCH jobs USING INDEX not_ready (status=? AND id>?)")
        for status in (SCHEDULED, IN_FLIGHT, COMPLETED, DEAD, CANCELLED, EXPIRED)
        for filter in (
            Filter(statuses=(status,)),
            Filter(statuses=(status,), queues=("q01", "q02"), types=("t",)),
            Filter(statuses=(status,), priority=ValueRange(1, 5), ready_at=ValueRange(0, 9)),
        )
    ),
]


@pytest.mark.parametrize(("filter", "expected"), LISTINGS)
@pytest.mark.parametrize("descending", [False, True])
def test_a_listing_walks_in_id_order_without_sorting(
    ticker: Ticker, filter: Filter, expected: str, descending: bool
) -> None:
    def read() -> None:
        lookups.list_jobs(ticker.core, filter, 0, descending, 50, NOW)

    assert plans_of(ticker, read) == [[expected.replace(">", "<") if descending else expected]]


@pytest.mark.parametrize("status", [SCHEDULED, IN_FLIGHT, COMPLETED, DEAD])
def test_a_sweep_by_status_finds_its_next_slice_by_the_index(
    ticker: Ticker, status: Status
) -> None:
    filter = Filter(statuses=(status,))
    (lines,) = plans_of(ticker, lambda: lookups.list_keys(ticker.core, filter, 0, FOREVER, 1000))
    slice = ["SEARCH jobs USING COVERING INDEX not_ready (status=? AND id>? AND id<?)"]
    assert lines == alike(slice)


def test_finished_jobs_are_listed_and_counted_by_the_index(ticker: Ticker) -> None:
    filter = Filter(statuses=(COMPLETED, DEAD), priority=ValueRange(0, 9))
    (lines,) = plans_of(ticker, lambda: lookups.count_jobs(ticker.core, filter, NOW))
    assert lines == ["SEARCH jobs USING INDEX not_ready (status=?)"]
    (lines,) = plans_of(ticker, lambda: lookups.list_jobs(ticker.core, filter, 0, False, 50, NOW))
    assert "SEARCH jobs USING INDEX not_ready (status=? AND id>?)" in lines


def test_scheduled_jobs_of_a_time_are_counted_by_the_index_of_times(ticker: Ticker) -> None:
    filter = Filter(statuses=(SCHEDULED,), queues=("q01",), ready_at=ValueRange(NOW, NOW + HOUR_MS))
    (lines,) = plans_of(ticker, lambda: lookups.count_jobs(ticker.core, filter, NOW))
    assert {
        "SEARCH jobs USING INDEX scheduled_by_date (ready_at>? AND ready_at<?)",
        "SEARCH jobs USING INDEX scheduled_by_wait (due_at>? AND due_at<?)",
    } <= set(lines)
    assert not [line for line in lines if "SCAN jobs" in line], lines


def test_ready_jobs_of_one_queue_are_found_by_their_queue(ticker: Ticker) -> None:
    filter = Filter(statuses=(READY,), queues=("q01",))
    (lines,) = plans_of(ticker, lambda: lookups.list_jobs(ticker.core, filter, 0, False, 50, NOW))
    held = "SEARCH jobs USING INDEX unfinished_of_group (queue=? AND group_id>?)"
    assert {CLAIM_QUEUE, held} <= set(lines)


def test_counting_by_queue_and_status_visits_no_job_but_the_expired(ticker: Ticker) -> None:
    assert is_counted(Filter(statuses=(READY,), queues=("q01",)))
    (lines,) = plans_of(ticker, lambda: lookups.visible_counts(ticker.core, NOW))
    purgeable = "SEARCH jobs USING INDEX purgeable (purge_at>? AND purge_at<?)"
    assert [line for line in lines if " jobs " in line] == [purgeable]


def test_the_counts_of_some_queues_are_found_by_their_names(ticker: Ticker) -> None:
    found = plan(ticker.connection, CORE["counts_of"])
    assert "SEARCH queue_counts USING PRIMARY KEY (queue=?)" in found


def test_the_oldest_ready_jobs_are_found_by_the_index(ticker: Ticker) -> None:
    ticker.store(1, queue="q01", priority=9)
    heads, lines = plans_of(ticker, lambda: lookups.oldest_ready(ticker.core, QUEUES[:3]))
    assert {line for line in heads if "jobs" in line or "head" in line} == {
        "SEARCH head USING INTEGER PRIMARY KEY (rowid=?)",
        CLAIM_QUEUE,
    }
    assert {line for line in lines if " jobs " in line} == {
        CLAIM_QUEUE,
        "SEARCH jobs USING INDEX ready_by_queue (queue=? AND priority>?)",
        "SEARCH jobs USING INDEX ready_by_queue (queue=? AND priority=?)",
    }
    of_lines = [
        "SEARCH lines USING COVERING INDEX heads_of_lines (queue=? AND head>?)",
        "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
    ]
    found = plan(ticker.connection, CORE["oldest_in_lines"])
    assert set(alike(of_lines)) <= set(found)
