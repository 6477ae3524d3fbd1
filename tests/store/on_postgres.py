"""The tick alone, over PostgreSQL: a database of its own for each."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pytest
from outbox.postgres import the_server

from zq.model.filters import EVERYTHING
from zq.model.job import JobRecord, show_dates
from zq.model.log import HistoryOptions
from zq.model.settling import Policy
from zq.store import lookups
from zq.store.postgres.connection import SESSION, TICK_SESSION, connect
from zq.store.postgres.floors import Floors
from zq.store.postgres.migrate import migrate
from zq.store.postgres.pipeline import Pipeline
from zq.store.postgres.queries import load
from zq.store.postgres.recovery import recover
from zq.store.postgres.snapshot import CORE, PostgresSnapshot
from zq.store.postgres.transaction import PostgresTransaction, read_columns
from zq.store.snapshot import Snapshot
from zq.tick.runner import TickRunner

from .rig import OF_SQLITE, POLICY, Orders, Ticker


@cache
def database_at(path: Path) -> str:
    """The address of the database that stands for a path: one as a first start makes it."""
    address = the_server().new_database(blank())
    with connect(address, SESSION) as connection:
        # Each is a database of its own, so each has an epoch of its own.
        connection.execute(
            "UPDATE meta SET value = $1 WHERE name = 'epoch'", (secrets.token_hex(16),)
        )
    return address


@cache
def blank() -> str:
    """The database that others are copies of: to make one takes longer than most tests."""
    address = the_server().new_database()
    with connect(address, SESSION) as connection:
        migrate(connection)
        return connection.info.dbname


class PostgresTicker(Ticker):
    """The tick alone, over one connection in the test's own thread."""

    def __init__(
        self, path: Path, policy: Policy = POLICY, history: HistoryOptions | None = None
    ) -> None:
        self.connection: Any = connect(database_at(path), {**SESSION, **TICK_SESSION})
        migrate(self.connection)
        self.columns = read_columns(self.connection)
        self.pipeline = Pipeline(self.connection)
        found, _ = recover(self.pipeline, self.columns, history and history.bounds)
        self._policy, self._device = policy, history and history.device
        Orders.__init__(self, found.last_key)
        self.restart(found.last_key)

    def restart(self, last_key: int = 0) -> None:
        transactions = partial(PostgresTransaction, self.pipeline, self.columns, floors=Floors())
        self.runner = TickRunner(
            transactions, self._policy, Random(1), last_key, {"device": self._device}
        )

    @property
    def sqlite(self) -> NoReturn:
        self.close()
        pytest.skip(OF_SQLITE)

    def value(self, sql: str, *parameters: object) -> Any:
        words = sql.replace("?", "$1")
        words = words.replace("group_concat(", "string_agg(", 1).replace("(queue)", "(queue, ',')")
        return self.connection.execute(words, parameters).fetchone()[0]

    @property
    def core(self) -> Snapshot:
        return PostgresSnapshot(CORE, self.connection)

    def snapshot(self, room: str) -> Snapshot:
        return PostgresSnapshot(load(f"{room}.postgres_reads"), self.connection)

    def jobs(self) -> dict[int, JobRecord]:
        found = lookups.list_jobs(self.core, EVERYTHING, -1, False, 1_000_000, 0)
        show_dates(found, 0)
        return {job.key: job for job in found}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep ticks of the database that stands for a path from writing; everybody may read."""
    with connect(database_at(path), SESSION) as connection, connection.transaction():
        connection.execute("LOCK TABLE jobs, queue_counts, queue_settings, meta IN EXCLUSIVE MODE")
        yield


def run_on(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Run a statement on the database that stands for a path: its rows."""
    with connect(database_at(path), SESSION) as connection:
        found = connection.execute(sql.encode())
        return found.fetchall() if found.description else []


def end_connections(path: Path) -> None:
    """End all connections to the database that stands for a path."""
    run_on(path, f"SELECT pg_terminate_backend(pid, 5000) {_OTHERS}")


def count_connections(path: Path) -> int:
    """How many connections there are to the database that stands for a path."""
    ((count,),) = run_on(path, f"SELECT count(*) {_OTHERS}")
    return int(count)


WRONG_COUNTS = """
    SELECT count(*) FROM (SELECT queue, status, n FROM queue_totals WHERE n <> 0) AS kept
    FULL JOIN (SELECT queue, status, count(*) AS n FROM jobs GROUP BY queue, status) AS found
        USING (queue, status)
    WHERE kept.n IS DISTINCT FROM found.n
"""
"""How many counts disagree with the rows of jobs."""

_OTHERS = """
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
"""
