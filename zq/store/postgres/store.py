"""The store: it opens a database of PostgreSQL for one server, and owns its connections."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import BinaryIO

import msgspec
from psycopg import errors

from zq.model.clock import Clock
from zq.model.commands import Claim, Tick, TickResult
from zq.model.effects import Quarantined
from zq.model.errors import NotOnThisStore
from zq.model.ids import SLOTS, Mint
from zq.model.job import JobRecord
from zq.model.log import Bounds
from zq.store.api import Bloat, FoundAtStart, MakeTicks, OthersNews, Store, Ticks, exhaust
from zq.store.errors import ForeignDatabase, StoreAway, StoreBusy
from zq.store.postgres.connection import (
    SCHEMA,
    SESSION,
    TICK_SESSION,
    Connection,
    connect,
    connect_first,
    store_errors,
)
from zq.store.postgres.floors import Floors
from zq.store.postgres.migrate import migrate, migrate_shared
from zq.store.postgres.owning import (
    lock,
    lock_slot,
    refuse_pooler,
    refuse_unfinished,
    refuse_unfit,
    value_of,
)
from zq.store.postgres.readers import PostgresLanes
from zq.store.postgres.recovery import note_clock, recover, recover_other
from zq.store.postgres.sharing import Memory, TurnNeeded
from zq.store.postgres.snapshot import CORE, PostgresSnapshot, reads_of_rooms
from zq.store.postgres.ticking import TickPipeline, TickThread
from zq.store.postgres.transaction import Columns, PostgresTransaction, read_columns
from zq.store.postgres.vacuum import Vacuum
from zq.store.postgres.watch import Watch
from zq.store.reads import Reads

log = logging.getLogger(__name__)

TRIES = 5
"""How often a tick is tried that another transaction, or a lost connection, has interrupted."""


class LoopMint(Mint):
    """Takes keys for a tick in the event loop, where requests take theirs from the same mint."""

    def __init__(self, mint: Mint, loop: asyncio.AbstractEventLoop) -> None:
        self._mint = mint
        self._loop = loop

    def take(self, count: int, now_ms: int) -> Sequence[int]:
        taken: Future[Sequence[int]] = Future()
        self._loop.call_soon_threadsafe(lambda: taken.set_result(self._mint.take(count, now_ms)))
        return taken.result()


class PostgresStore(Store):
    """One open database. `open_store` makes it.

    Ticks run on a thread of their own, since they wait for a network. It alone uses their
    connection.
    """

    def __init__(
        self,
        address: str,
        thread: TickThread,
        pipeline: TickPipeline,
        columns: Columns,
        at_start: FoundAtStart,
        ticks: Ticks,
        read_timeout: float,
        slot: int,
        memory: Memory | None,
        size: int,
    ) -> None:
        self.slot = slot
        self.slots = 1 if memory is None else SLOTS
        self.at_start = at_start
        self.steady = at_start.steady
        self.logged = at_start.logged
        self.quarantined = Quarantined(0, ())
        self.when_away: Callable[[StoreBusy], bool] = _waits_on
        self.when_unreadable: Callable[[str, Sequence[object]], Awaitable[object]] = _nobody_helps
        self.when_rested: Callable[[], object] = bool
        self.when_others: Callable[[OthersNews], object] = bool
        self.uncopied_bytes = 0
        self.wants_checkpoint = False
        self.wal_is_over = False
        self._thread = thread
        self._pipeline = pipeline
        pipeline.when_away = partial(setattr, thread, "cause")
        thread.when_away = self._held_up
        self._columns = columns
        self._memory = memory
        self._ticks = ticks
        self.lanes = PostgresLanes(address, read_timeout, self.steady)
        self.reads = Reads(self.lanes, partial(PostgresSnapshot, CORE), reads_of_rooms)
        self._vacuum = Vacuum(address)
        self._vacuum.start()
        self._watch: Watch | None = None
        if memory is not None:
            self._watch = Watch(address, slot, pipeline.start, self.steady, self._recover_other)
            self._watch.when_heard = self._hear
            self._watch.start()
        self._bytes = size
        """The size of the database when it was last looked at."""

    @property
    def flushed_by(self) -> str:
        return "postgresql"

    @property
    def is_closed(self) -> bool:
        """True if the tick's connection is closed: by this store, or since it was lost."""
        return self._pipeline.connection.closed

    async def tick(self, tick: Tick) -> TickResult:
        """Run one tick in its thread. PostgreSQL has flushed its commit when this returns."""
        if tick.mint is not None:
            mint = LoopMint(tick.mint, asyncio.get_running_loop())
            tick = msgspec.structs.replace(tick, mint=mint)
        result = await self._thread.run(self._run, tick)
        self._vacuum.has_changed = True
        if self._watch is not None:
            if result.rows:
                self._watch.tell()
            if any(map(_came_short, tick.claims, result.claimed)):
                self._watch.hunger()
        if result.acknowledged:
            self.quarantined = Quarantined(0, ())
        return result

    def _run(self, tick: Tick) -> TickResult:
        result = self._commit(tick)
        result.flush_s = self._pipeline.flush_s
        return result

    def _commit(self, tick: Tick) -> TickResult:
        for _ in range(TRIES - 1):
            self._pipeline.mend()
            try:
                return exhaust(self._ticks(tick))
            except TurnNeeded:
                assert self._memory is not None, "it is alone without others"
                self._memory.needs_turn()
            except StoreBusy as error:
                if self._memory is None or self._memory.asks:
                    log.info("a tick was interrupted, and is tried again", exc_info=error)
                else:
                    self._memory.doubt()
        self._pipeline.mend()
        return exhaust(self._ticks(tick))

    async def sync(self) -> None:
        """Bring to the disk what ticks have answered before their flush."""
        await self._thread.run(self._pipeline.sync)

    async def check(self) -> None:
        """Connect again if the connection was lost: whoever has its lock has the database."""
        await self._thread.run(self._pipeline.mend)

    async def checkpoint(self, *, shrink: bool = False) -> None:
        """Nothing: PostgreSQL copies its log by itself."""

    async def tidy(self, *, spare: bool = True) -> bool:
        if not spare:
            raise NotOnThisStore(
                "files to compact",
                "its server vacuums them while it runs, for what comes next. VACUUM FULL of the"
                " tables in the schema zq gives space back to the disk, once the server is stopped",
            )
        self._bytes = await self._thread.run(self._tidy)
        return False

    def _tidy(self) -> int:
        self._pipeline.mend()
        with store_errors():
            tx = PostgresTransaction(self._pipeline, self._columns, 0, self._memory)
            tx.begin()
            try:
                tx.run("forget_empty_queues")
                tx.commit(durable=False)
            except BaseException:
                tx.roll_back()
                raise
            return _size(self._pipeline.connection)

    def _held_up(self, cause: StoreAway) -> None:
        if self.when_away(cause):
            self._pipeline.gives_up = True

    def _hear(self, news: OthersNews) -> None:
        self.logged = max(self.logged, news.logged)
        self.when_others(news)

    async def _recover_other(self, slot: int, start: int) -> None:
        """Return the jobs of another server that has died."""
        queues = await self._thread.run(self._return_jobs, slot, start)
        if queues is not None:
            log.warning(f"the server of slot {slot} is gone: its jobs are ready again")
            self.when_others(OthersNews(woken=queues))

    def _return_jobs(self, slot: int, start: int) -> list[str] | None:
        assert self._memory is not None, "only servers that share a database look after others"
        self._memory.doubt()
        self._pipeline.mend()
        return recover_other(self._pipeline, self._columns, slot, start, self._memory, self.steady)

    async def ping(self) -> None:
        """Nothing: the thread may wait for PostgreSQL, which a restart does not bring back."""

    async def backup(self, least_free: int) -> BinaryIO:
        raise NotOnThisStore(
            "backups of its own",
            "`pg_dump --schema=zq` writes a dump. pg_basebackup with an archive of the log copies"
            " the whole of PostgreSQL, and pg_verifybackup checks such a copy",
        )

    def wal_bytes(self) -> int:
        """0: the log is PostgreSQL's own."""
        return 0

    def database_bytes(self) -> int:
        """The size of the database when it was last looked at: at the start, and while idle."""
        return self._bytes

    def free_bytes(self) -> None:
        """PostgreSQL does not tell what its disk has."""

    @property
    def leads(self) -> bool:
        return self._watch is None or self._watch.leads

    def servers(self) -> int:
        return 1 if self._watch is None else 1 + len(self._watch.others)

    def bloat(self) -> Bloat:
        return self._vacuum.bloat

    async def close(self) -> None:
        try:
            with store_errors():
                await self._thread.run(note_clock, self._pipeline, self._columns, self.steady)
                await self._thread.run(self._pipeline.release)
        finally:
            await self.abandon()

    async def abandon(self) -> None:
        await self._vacuum.stop()
        if self._watch is not None:
            await self._watch.stop()
        await self._thread.run(self._pipeline.connection.close)
        self._thread.close()
        await asyncio.get_running_loop().run_in_executor(None, self.lanes.close)


async def open_store(
    address: str,
    make_ticks: MakeTicks,
    *,
    read_timeout: float,
    history: Bounds | None = None,
    clock: Clock | None = None,
    off_counts: bool = True,
    servers: int = 1,
    name: str = "",
) -> PostgresStore:
    """Connect, lock, migrate and recover a database. Its tables are made if they are missing.

    Its steady time goes on by this `clock`, or by the machine's; over a reboot by as much as that
    took, if the time in which the machine was off counts (`off_counts`).
    `read_timeout` is in seconds; `history` limits how much of it is retained. Up to so many
    `servers` may share the database, each with a `name`.

    Raises `DirectoryInUse` if another server has the database, `DatabaseTooNew`, `ForeignDatabase`
    if this is no PostgreSQL that can hold it, or `StoreError`.
    """
    thread = TickThread()
    try:
        connection, slot = await thread.run(_connected, address, servers)
        try:
            columns = await thread.run(read_columns, connection)
            memory = Memory(slot) if servers > 1 else None
            pipeline = TickPipeline(address, slot, connection, shares=servers > 1)
            recovering = partial(
                recover, pipeline, columns, off_counts=off_counts, name=name, memory=memory
            )
            at_start, pipeline.start = await thread.run(recovering, history, slot, clock)
            transactions = partial(
                PostgresTransaction,
                pipeline,
                columns,
                memory=memory,
                shares=True,
                floors=Floors(),
            )
            ticks = await thread.run(make_ticks, transactions, at_start.last_key)
            size = await thread.run(_size, connection)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        thread.close(wait=False)
        raise
    return PostgresStore(
        address, thread, pipeline, columns, at_start, ticks, read_timeout, slot, memory, size
    )


def _connected(address: str, servers: int = 1) -> tuple[Connection, int]:
    """The tick's connection and its slot, in a database of this schema that is free for it."""
    connection = connect_first(address, SESSION | TICK_SESSION)
    try:
        with store_errors():
            with connect(address, SESSION) as other:
                refuse_pooler(connection, other)
            refuse_unfit(connection)
            lock(connection, shares=servers > 1)
            slot = lock_slot(connection, servers)
            if servers > 1:
                migrate_shared(connection)
            else:
                migrate(connection)
            refuse_unfinished(connection)
        return connection, slot
    except BaseException as error:
        connection.close()
        if isinstance(error.__cause__, errors.InsufficientPrivilege):
            raise ForeignDatabase(
                f"{error}: the user of the address must be the owner of the database, and of what"
                f" lies in its schema {SCHEMA}"
            ) from error.__cause__
        raise


def _came_short(wanted: Claim, claimed: Sequence[JobRecord]) -> bool:
    return len(claimed) < wanted.limit


def _size(connection: Connection) -> int:
    return int(str(value_of(connection, "SELECT pg_database_size(current_database())")))


def _waits_on(_cause: StoreBusy) -> bool:
    return False


async def _nobody_helps(_source: str, _keys: Sequence[object]) -> None:
    """Do nothing: PostgreSQL looks after its own pages."""
