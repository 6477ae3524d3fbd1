"""Stores to experiment on: commands with default fields, and a clock that stands still."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar

import pytest
from blank import lay_out

from zq.model.commands import AnyCommand, Claim, Due, Enqueue, Tick, TickResult
from zq.model.filters import EVERYTHING
from zq.model.ids import Mint
from zq.model.job import BackoffRule, ErrorRecord, JobRecord, NewJob, show_dates
from zq.model.leasing import Holder
from zq.model.lifecycle import Status
from zq.model.log import HistoryOptions
from zq.model.settling import Policy
from zq.store import lookups
from zq.store.snapshot import Snapshot
from zq.store.sqlite import upkeep
from zq.store.sqlite.connection import WRITER_PRAGMAS, add_functions
from zq.store.sqlite.migrate import migrate
from zq.store.sqlite.queries import load
from zq.store.sqlite.snapshot import CORE, SqliteSnapshot
from zq.store.sqlite.store import SqliteStore, open_store
from zq.store.sqlite.transaction import SqliteTransaction
from zq.tick.runner import TickRunner, make_ticks

P = ParamSpec("P")
T = TypeVar("T")

NOW = 1_750_000_000_000
FOREVER = 2**62
POLICY = Policy(retry_limit=2, backoff=BackoffRule(2.0, 100, 0), completed_ms=0, dead_ms=60_000)
WORKERS = {1: Holder("ann"), 2: Holder("bob 'ü'", stall_limit=1)}
"""What the holders say of themselves; the third says nothing."""

CACHE_BYTES = 4 * 1024 * 1024

KIND = os.environ.get("ZQ_TESTS_STORE", "sqlite")
"""The store of tests that say of no store in particular what they say."""

OF_SQLITE = "it looks into SQLite, or does what tests can do with that store alone"
"""Why a test is left out where another store is asked for."""

only_sqlite = pytest.mark.skipif(KIND != "sqlite", reason=OF_SQLITE)

OPENERS = {"sqlite": open_store}
"""How each kind of store is opened."""


def new_job(**fields: Any) -> NewJob:
    """A job that waits to be stored; its payload's size is counted."""
    plain: dict[str, Any] = {"queue": "q", "type": "t", "payload": '{"n":1}'}
    values = plain | fields
    return NewJob(**{"payload_size": len(values["payload"].encode()), **values})


class Orders:
    """Makes commands and ticks for one database."""

    def __init__(self, last_key: int) -> None:
        self.now = NOW
        self.ahead = 0
        """How far steady time is ahead of the wall."""
        self.mint = Mint(last_key)

    def step(self, ms: int) -> None:
        """Set the wall clock forward or back, while no time passes."""
        self.now += ms
        self.ahead -= ms

    def enqueue(self, jobs: Iterable[NewJob]) -> Enqueue:
        jobs = list(jobs)
        keys = self.mint.take(len(jobs), self.now)
        return Enqueue(keys=keys, jobs=jobs, now=self.now, size=sum(j.payload_size for j in jobs))

    def tick(
        self,
        commands: Sequence[AnyCommand],
        claims: Sequence[Claim] = (),
        *,
        lapse: bool = False,
        promote: bool = False,
        purge: bool = False,
        expire: bool = False,
        names: bool = False,
        trim: bool = False,
        refill: bool = False,
        pause: bool = False,
        durable: bool = False,
    ) -> Tick:
        flags = {
            Due.LEASE: lapse,
            Due.EXPIRY: expire,
            Due.PROMOTION: promote,
            Due.WAIT: promote,
            Due.PURGE: purge,
            Due.NAMES: names,
            Due.TRIM: trim,
            Due.BUDGET: refill,
            Due.PAUSE: pause,
        }
        return Tick(
            now=self.now,
            steady=self.now + self.ahead,
            commands=commands,
            claims=claims,
            due=frozenset(due for due, is_due in flags.items() if is_due),
            durable=durable,
            workers=WORKERS,
            mint=self.mint,
        )


class Ticker(Orders):
    """The tick alone, over one connection in the test's own thread."""

    def __init__(
        self, path: Path, policy: Policy = POLICY, history: HistoryOptions | None = None
    ) -> None:
        lay_out(path)
        # A tick may prepare hundreds of texts; the writer's connection keeps them as well.
        self.connection = sqlite3.connect(path, isolation_level=None, cached_statements=512)
        for name, value in WRITER_PRAGMAS.items():
            self.connection.execute(f"PRAGMA {name} = {value}")
        add_functions(self.connection)
        migrate(self.connection)
        last_key = upkeep.recover(self.connection, history and history.bounds).last_key
        device = history and history.device
        self._policy, self._device = policy, device
        super().__init__(last_key)
        self.restart(last_key)

    def restart(self, last_key: int = 0) -> None:
        """Forget what a process knows of its database, as a new one does."""
        transactions = partial(SqliteTransaction, self.connection)
        self.runner = TickRunner(
            transactions, self._policy, Random(1), last_key, {"device": self._device}
        )

    def run(self, *commands: AnyCommand, claims: Sequence[Claim] = (), **flags: bool) -> TickResult:
        return self.runner.run(self.tick(commands, claims, **flags))

    def store(self, count: int, **fields: Any) -> list[int]:
        """Enqueue equal jobs; their keys."""
        command = self.enqueue([new_job(**fields)] * count)
        self.run(command)
        return list(command.keys)

    def take(self, count: int, holder: int = 1, queues: tuple[str, ...] | None = None) -> list[int]:
        """Claim jobs; their keys."""
        result = self.run(claims=[Claim(queues, [(holder, count)])])
        return [job.key for job in result.claimed[0]]

    @property
    def sqlite(self) -> sqlite3.Connection:
        """The connection, for tests that look into SQLite: with another store they end here."""
        return self.connection

    def value(self, sql: str, *parameters: object) -> Any:
        """The first value that a query answers."""
        return self.connection.execute(sql, parameters).fetchone()[0]

    def jobs(self) -> dict[int, JobRecord]:
        """All stored jobs by key."""
        found = lookups.list_jobs(self.core, EVERYTHING, -1, False, 1_000_000, 0)
        show_dates(found, 0)
        return {job.key: job for job in found}

    @property
    def core(self) -> Snapshot:
        """What the reads of the core get."""
        return core_of(self.connection)

    def snapshot(self, room: str) -> Snapshot:
        """What the reads of a room get."""
        return snapshot_of(self.connection, room)

    def check_counts(self) -> None:
        """The counts that the tick keeps are those of a full count."""
        kept = set(self.connection.execute("SELECT queue, status, n FROM queue_counts WHERE n > 0"))
        full = "SELECT queue, status, count(*) FROM jobs GROUP BY queue, status"
        assert kept == set(self.connection.execute(full))

    def close(self) -> None:
        self.connection.close()


def core_of(connection: sqlite3.Connection) -> Snapshot:
    """What the reads of the core get of a connection."""
    return SqliteSnapshot(CORE, connection)


def snapshot_of(connection: sqlite3.Connection, room: str) -> Snapshot:
    """What the reads of a room get of a connection."""
    return SqliteSnapshot(load(f"{room}.sqlite_reads"), connection)


def make_ticker(path: Path) -> Ticker:
    """The tick alone, over the store that is asked for."""
    if KIND == "sqlite":
        return Ticker(path)
    from .on_postgres import PostgresTicker

    return PostgresTicker(path)


def address_of(directory: Path) -> str:
    """The database of PostgreSQL that stands for a directory. It is made at its first use."""
    from .on_postgres import database_at

    return database_at(directory)


def terminate(directory: Path) -> None:
    """End all connections to such a database, as a kill of its server does."""
    from .on_postgres import end_connections

    end_connections(directory)


def connections_to(directory: Path) -> int:
    """How many connections to such a database there are."""
    from .on_postgres import count_connections

    return count_connections(directory)


def writing(directory: Path) -> AbstractContextManager[None]:
    """Keep all others from writing to such a database, as long as this lasts."""
    from .on_postgres import locked

    return locked(directory)


def run_beside(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    """Run a statement on the database of a directory, whatever store it has: its rows."""
    if KIND == "sqlite":
        file = directory / "zq.db"
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()
    from .on_postgres import run_on

    return run_on(directory, sql)


class Rig(Orders):
    """A whole store, with its threads, on a directory of its own."""

    def __init__(
        self,
        directory: Path,
        read_timeout: float = 60.0,
        max_wal: int = 2**30,
        history: HistoryOptions | None = None,
        kind: str = "sqlite",
    ) -> None:
        super().__init__(0)
        self._open = OPENERS[kind]
        self.directory = directory
        self._read_timeout = read_timeout
        self._max_wal = max_wal
        self._history = history
        self._store: SqliteStore | None = None

    @property
    def store(self) -> SqliteStore:
        assert self._store is not None, "the store is closed"
        return self._store

    async def open(self) -> None:
        """Open the directory as a starting server does; new keys begin after all old ones."""
        lay_out(self.directory / "zq.db")
        self._store = await self._open(
            self.directory,
            make_ticks(POLICY, Random(1), {"device": self._history and self._history.device}),
            cache_bytes=CACHE_BYTES,
            read_timeout=self._read_timeout,
            max_wal=self._max_wal,
            history=self._history and self._history.bounds,
        )
        self.mint = Mint(self._store.at_start.last_key)

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
        self._store = None

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    async def run(
        self, *commands: AnyCommand, claims: Sequence[Claim] = (), **flags: bool
    ) -> TickResult:
        return await self.store.tick(self.tick(commands, claims, **flags))

    async def keep(self, count: int, **fields: Any) -> list[int]:
        """Enqueue equal jobs; their keys."""
        command = self.enqueue([new_job(**fields)] * count)
        await self.run(command)
        return list(command.keys)

    async def take(self, count: int, holder: int = 1) -> list[JobRecord]:
        """Claim jobs from any queue."""
        result = await self.run(claims=[Claim(None, [(holder, count)])])
        return result.claimed[0]

    async def statuses(self) -> dict[int, Status]:
        """The state of every stored job."""
        jobs = await self.store.reads.jobs_page(EVERYTHING, -1, False, 1_000_000, 0)
        return {job.key: job.status for job in jobs}

    async def errors(self, key: int) -> list[ErrorRecord]:
        """A job's failures."""
        records, _ = await self.store.reads.errors_page(key, 0, False, 1_000)
        return records

    async def read(
        self, function: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read of the core."""
        return await self.store.reads.lanes.looks(function, *args, **kwargs)

    async def look(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a function of the test's own on one of the readers."""
        return await self.store.readers.looks.read(function, *args, **kwargs)
