"""Each statement has one possible plan, however little PostgreSQL knows of its tables."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest

from zq.model.filters import Filter, ValueRange
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.operators.admin.store import LISTS
from zq.store.postgres.connection import PLANS, SESSION, connect
from zq.store.postgres.queries import load
from zq.store.postgres.snapshot import CORE
from zq.store.postgres.transaction import TEXTS, counted
from zq.store.postgres.where import Finds, is_listed_by_status, where
from zq.store.texts import merged, merged_lines

from .explained import Explained, Plan
from .plans import FINDS
from .tables import states
from .test_texts import NO_STATEMENTS, WORDS, modules

Name = tuple[str, str]

EITHER = {("trends/tick", "count_trends")}
"""Two indexes serve these alike."""

OF_USERS = {"queue_ti/tick", "queue_ti/reads"}
"""There are few users: their statements may go through all of them."""

GROWING = {
    *("jobs", "payloads", "results", "errors", "dedupe", "lines", "log_batches", "shares", "inbox"),
    *("topic_records", "topic_jobs", "topic_writes", "producers", "producer_ends", "trends"),
    *("type_trends", "failure_counts", "open_batches"),
}
"""Tables that have more rows the more jobs there are."""

WHOLE = {
    # The filter of a request may leave nothing to look up.
    ("postgres/lookups", "count"),
    # These run after damage.
    *(("budgets/tick", "count_draws"), ("budgets/tick", "return_draws")),
    *(("fair/tick", "count_shares"), ("postgres/lines", "torn_lines")),
    # The index has the few lines that age. One row is enough to know.
    *(("postgres/lines", "aged_lines"), ("fair/tick", "has_shares")),
    ("producers/tick", "count_producers"),
}
"""Statements that go through all of a table which grows."""

SORTING = {
    # Rows that a statement was given, or that were found by the keys that it was given.
    *(("postgres/tick", name) for name in ("restore_all_locks", "restore_locks", "write_names")),
    *(("postgres/tick", "restore_moved_locks"), ("postgres/upkeep", "groups_of")),
    *(("postgres/lines", name) for name in ("name_lines", "name_new_lines", "lines_of_jobs")),
    *(("postgres/lookups", "last_errors"), ("budgets/tick", "count_returned")),
    *(("fair/tick", "return_shares"), ("failures/tick", "write_error_groups")),
    *(("topics/tick", "note_expired_numbers"), ("topics/tick", "note_writes")),
    *(("search/reads", "places"), ("postgres/sharing", "lock_keys")),
    # A bounded number, of each queue at most.
    *(("postgres/tick", name) for name in ("read_due", "read_waited")),
    *(("postgres/claims", name) for name in ("claim_span", "first_heads", "claims of 200 queues")),
    *(("postgres/claims", name) for name in ("claims of 1 queue", "claims of 5 queues")),
    *(("postgres/lines", name) for name in ("first_line_queues", "lines of 5 queues")),
    *(("postgres/lookups", name) for name in ("oldest_ready", "oldest_in_lines")),
    *(("postgres/lookups", f"list_{each}_by_status") for each in ("ascending", "descending")),
    ("postgres/lookups", "list_keys_by_status"),
    *(("fair/reads", name) for name in ("keys", "longest_waiting")),
    *(("search/reads", name) for name in ("ascending", "descending", "types", "payload_keys")),
    *(("waits/reads", "groups"), ("waits/reads", "running_long"), ("backlog/reads", "lines")),
    ("forward/reads", "new_jobs"),
    # Jobs in flight, and rows that are about to be deleted.
    *(("postgres/upkeep", "read_begun"), ("budgets/tick", "return_in_use")),
    ("postgres/lookups", "purged_counts"),
    # Counts that are added up.
    *(("failures/reads", "failures_since"), ("trends/reads", "type_trends")),
    *(("admin/reads", "totals"), ("crons/reads", "queues"), ("devices/reads", "devices")),
    # These run after damage.
    *(("budgets/tick", "count_draws"), ("budgets/tick", "return_draws")),
    ("fair/tick", "count_shares"),
}
"""Statements that sort, each with the reason why it is little."""


@cache
def texts() -> dict[Name, str]:
    """Each text that is run, by its file and its name."""
    append = load("zq.store.postgres.log")["append"]
    found: dict[Name, str] = {}
    for module in modules():
        package, file = module.split(".")[-2:]
        place = f"{package}/{file.removeprefix('postgres_')}"
        for name, text in load(module).items():
            if name in NO_STATEMENTS:
                continue
            whole = append.replace("SOURCE", text[7:]) if text.startswith("APPEND ") else text
            if "LIST" in text:
                for list, (condition, first) in LISTS.items():
                    sql = whole.replace("LIST", condition).replace("PLACE", first)
                    found[place, f"{name} of {list.value}"] = _with_words(sql)
            else:
                found[place, name] = _with_words(whole)
    for free, bounded in ((1, 0), (3, 2), (150, 50)):
        name = f"claims of {free + bounded} queue{'s' * (free > 1)}"
        found["postgres/claims", name] = merged(TEXTS, free, bounded)
    found["postgres/claims", "what claims of 5 queues choose from"] = counted(5)
    found["postgres/lines", "lines of 5 queues"] = merged_lines(TEXTS, "line_arm", 5)
    return found


def _with_words(text: str) -> str:
    for word, meaning in WORDS.items():
        text = text.replace(word, meaning)
    return text


@pytest.fixture(scope="module")
def databases() -> Iterator[dict[str, Explained]]:
    """What explains texts in each state of the tables."""
    with ExitStack() as stack:
        yield {
            state: Explained(stack.enter_context(connect(address, {**SESSION, **PLANS})))
            for state, address in states()
        }


@pytest.fixture(scope="module")
def plans(databases: dict[str, Explained]) -> dict[str, dict[Name, tuple[Plan, Plan]]]:
    """The plans of all texts in each state of the tables."""
    return {
        state: {name: explained.plan(text) for name, text in texts().items()}
        for state, explained in databases.items()
    }


def test_a_statement_finds_its_rows_by_the_index_made_for_it(
    plans: dict[str, dict[Name, tuple[Plan, Plan]]],
) -> None:
    for state, found in plans.items():
        for name, (plan, _) in found.items():
            file, statement = name
            if name not in EITHER and file not in OF_USERS:
                assert plan == FINDS[file][statement], (name, state)


def test_a_statement_has_the_same_plan_whatever_is_known_of_its_tables(
    plans: dict[str, dict[Name, tuple[Plan, Plan]]],
) -> None:
    first, *others = plans.values()
    for other in others:
        for name, (_, conditions) in other.items():
            if name not in EITHER and name[0] not in OF_USERS:
                assert conditions == first[name][1], name


def test_the_plan_of_every_statement_is_known() -> None:
    known = {(file, name) for file, statements in FINDS.items() for name in statements}
    there = {file for file, _ in texts()}
    assert {name for name in known if name[0] in there} == texts().keys()


def test_no_statement_visits_or_sorts_all_rows_of_a_table_that_grows() -> None:
    for file, statements in FINDS.items():
        for statement, plan in statements.items():
            name = (file, statement)
            if "SORT" in plan:
                assert name in SORTING or statement.endswith(" of in_flight"), name
            whole = {word.split()[2] for word in plan if word.startswith("ALL OF ")}
            assert not whole & GROWING or name in WHOLE or statement.startswith("clear_"), name


SOME = ValueRange(1, 5)

NARROWED: dict[str, dict[str, Any]] = {
    "by nothing": {},
    "by queues": {"queues": ("q", "r")},
    "by types": {"types": ("t",)},
    "by groups": {"queues": ("q",), "groups": ("g",)},
    "by unique keys": {"unique_keys": ("k",)},
    "by budgets": {"budgets": ("b",)},
    "by priority": {"priority": SOME},
    "by attempts": {"attempts": SOME},
    "by times": {"ready_at": SOME, "finished_at": SOME},
    "by sweep": {"swept": 3},
    "by reach": {"reach": Reach(("q",))},
    "by age": {"upto": 9},
    "by failures": {"errors": ("e",)},
    "by keys": {"keys": (1, 2)},
    "as revivable": {"revivable": True},
}

STATUSES: tuple[tuple[Status, ...], ...] = (
    (),
    (Status.READY,),
    (Status.DEAD,),
    (Status.COMPLETED, Status.DEAD),
    (Status.SCHEDULED, Status.READY, Status.IN_FLIGHT),
)


@pytest.mark.parametrize("query", ["list_ascending", "list_descending", "list_keys", "matching"])
@pytest.mark.parametrize("fields", NARROWED.values(), ids=NARROWED)
def test_a_filter_finds_jobs_in_order_whatever_is_known_of_the_table(
    databases: dict[str, Explained], query: str, fields: dict[str, Any]
) -> None:
    for statuses in STATUSES:
        filter = Filter(statuses=statuses, **fields)
        sql, expected = _listing(query, filter)
        for state, explained in databases.items():
            assert explained.plan(sql)[0] == expected, (statuses, state)


def _listing(query: str, filter: Filter) -> tuple[str, set[str]]:
    """The text by which a query finds the jobs of a filter, and its plan."""
    if query == "matching":
        conditions, _ = where(filter, finds=Finds.BY_KEYS)
        text, plan = load("zq.store.postgres.tick")[query], {"jobs BY jobs_pkey"}
        plan |= {"errors BY errors_pkey"} if filter.errors else set()
        return text.replace("CONDITIONS", conditions), plan
    by_status = is_listed_by_status(filter)
    conditions, _ = where(filter, 9, Finds.BY_STATUS if by_status else Finds.IN_ORDER)
    text = CORE[f"{query}_by_status" if by_status else query].replace("CONDITIONS", conditions)
    if filter.errors:
        return text, {"jobs BY jobs_pkey", "errors BY errors_pkey", "errors BY errors_by_signature"}
    # Of each status, no more jobs than are asked for are sorted.
    return text, {"SORT", "jobs BY not_ready"} if by_status else {"jobs BY jobs_pkey"}
