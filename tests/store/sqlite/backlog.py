"""A database with jobs of every kind, and what queries do there."""

import re
import sqlite3
from collections.abc import Callable, Iterable

from zq.model.commands import Fail, Succeed
from zq.model.job import JobSettings, Retention
from zq.model.lifecycle import Status
from zq.model.settling import Failure
from zq.model.unique import Scope

from ..rig import NOW, Ticker, new_job

QUEUES = tuple(f"q{number:02}" for number in range(30))
HOUR_MS = 3_600_000
SCHEDULED, READY, IN_FLIGHT, COMPLETED, DEAD, CANCELLED, EXPIRED = Status


def fill(ticker: Ticker, jobs: int) -> None:
    """Jobs of every kind: a quarter scheduled, some in flight, completed, dead, some unique."""
    kept = JobSettings(retention=Retention(completed_ms=HOUR_MS))
    ticker.run(
        ticker.enqueue(
            new_job(
                queue=QUEUES[index % len(QUEUES)],
                priority=index % 3,
                ready_at=NOW + HOUR_MS + index if index % 4 == 0 else None,
                options=kept if index % 2 else None,
                unique_key=f"key {index}" if index % 5 == 0 else None,
                unique_while=Scope.EXISTS if index % 5 == 0 else None,
            )
            for index in range(jobs)
        )
    )
    taken = ticker.take(40)
    ticker.run(Succeed(taken[:15]), *(Fail(k, Failure("m", kill=True)) for k in taken[15:30]))


NEWER = sqlite3.sqlite_version_info >= (3, 51)
"""A SQLite that says more of its plans than that of Debian 12."""


def alike(lines: Iterable[str]) -> list[str]:
    """The lines of a plan as each SQLite says them.

    Newer ones know more partial indexes that have all that is read, and name what looks for a first
    row alone.
    """
    return [re.sub(" COVERING| EXISTS", "", line) for line in lines] if NEWER else list(lines)


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The lines of a query's plan that say how a table is visited or rows are sorted."""
    parameters = dict.fromkeys(re.findall(r":([a-z_0-9]+)", sql))
    lines = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    kinds = ("SCAN ", "SEARCH ", "USE TEMP B-TREE")
    ours = [line for line in lines if line.startswith(kinds) and "VIRTUAL TABLE" not in line]
    # PostgreSQL 15 wants a name for a part of a query, which is `few` where SQLite shares the text.
    parts = ("SCAN (", "SCAN few", "SCAN CONSTANT ROW")
    return alike(line for line in ours if not line.startswith(parts))


def plans_of(ticker: Ticker, run: Callable[[], object]) -> list[list[str]]:
    """The plans of the SELECTs over jobs that a function really runs."""
    statements: list[str] = []
    ticker.connection.set_trace_callback(statements.append)
    try:
        run()
    finally:
        ticker.connection.set_trace_callback(None)
    reading = ("SELECT", "WITH")
    selects = [sql for sql in statements if sql.startswith(reading) and "FROM jobs" in sql]
    assert selects, "nothing was read"
    return [plan(ticker.connection, sql) for sql in dict.fromkeys(selects)]


def steps(connection: sqlite3.Connection, run: Callable[[], object]) -> int:
    """Instructions of SQLite's virtual machine: its work, whatever the machine's mood."""
    count = 0

    def note() -> None:
        nonlocal count
        count += 1

    connection.set_progress_handler(note, 1)
    try:
        run()
    finally:
        connection.set_progress_handler(None, 1)
    return count
