"""The engine: every verb that a door may call. Ids go in and out as text; jobs as the model's.

A verb that touches jobs is told how far its caller's reach goes; what lies beyond does not exist.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from zq.engine.events import Events
from zq.engine.history import History
from zq.engine.inbox import result_of
from zq.engine.jq_filter import JqFilter
from zq.engine.leases import Leases
from zq.engine.listing import Listing, Page
from zq.engine.loop import TickLoop
from zq.engine.outcomes import Outcomes
from zq.engine.progress import Progress
from zq.engine.queue_stats import QueueStats
from zq.engine.revivals import Revivals
from zq.engine.room import Room
from zq.engine.settings import SettingsOfQueues
from zq.engine.settlements import Settlements
from zq.engine.stats import Stats
from zq.engine.streams import Streams
from zq.engine.sweeps import Sweeps
from zq.engine.tallies import Tallies
from zq.engine.waiters import Waiter, Waiters
from zq.engine.workers import Workers
from zq.model.clock import Clock
from zq.model.commands import (
    Change,
    Clear,
    Command,
    Delete,
    Enqueue,
    Enqueued,
)
from zq.model.damage import Quarantined
from zq.model.errors import (
    ErrorRecordNotFound,
    JobNotFound,
    Unavailable,
    ZqError,
)
from zq.model.filters import EVERYTHING, Filter
from zq.model.ids import IdCodec, Mint
from zq.model.job import ErrorRecord, Job, NewJob
from zq.model.lifecycle import Status
from zq.model.outcome import Outcome
from zq.model.patching import UNSET, Patch
from zq.model.reach import EVERYWHERE, Reach
from zq.store import reads
from zq.store.store import Store

T = TypeVar("T")


class EngineOptions(NamedTuple):
    """Settings of the engine. Times in seconds, sizes in bytes."""

    global_in_flight_limit: int
    max_inbox_jobs: int
    disk_reserve: int
    reaper_interval: float
    filter_timeout: float
    read_timeout: float
    durable: bool
    durable_enqueues: bool
    max_result: int
    max_sweeps: int
    recording: bool


class Accepted(NamedTuple):
    """What an enqueue did: keys and time of minting, and which of the jobs were duplicates."""

    keys: Sequence[int]
    now: int
    reply: Enqueued

    @property
    def duplicates(self) -> int:
        """How many of the jobs were not stored, for they are there already."""
        return len(self.reply.duplicates)


class Storage(NamedTuple):
    """What the data takes on the disk, and what is left, in bytes."""

    wal_bytes: int
    database_bytes: int
    free_bytes: int


class Engine:
    """One queue over one store. Start it in the event loop that it is to live in."""

    def __init__(self, store: Store, clock: Clock, options: EngineOptions) -> None:
        self.ids = IdCodec(store.id_suffix)
        self.streams = Streams(options.global_in_flight_limit, store.claimed)
        self._store = store
        self._clock = clock
        self._options = options
        self._mint = Mint(store.last_key)
        self._filter = JqFilter(timeout=options.filter_timeout)
        self._loop = TickLoop(
            store,
            self.streams,
            clock,
            max_inbox_jobs=options.max_inbox_jobs,
            reaper_interval=options.reaper_interval,
            durable=options.durable,
            durable_enqueues=options.durable_enqueues,
        )
        self._tallies = Tallies(store, clock)
        self._listing = Listing(store, clock, self._tallies, self._filter, options.read_timeout)
        self.sweeps = Sweeps(store, clock, self._filter, self._submit, options.max_sweeps)
        self.settings = SettingsOfQueues(store, self._submit)
        self.revivals = Revivals(self.ids, self.sweeps, self._submit)
        self.settlements = Settlements(self.ids, self._submit, options.max_result)
        self.outcomes = Outcomes(
            store, clock, self.ids, self._loop.waiters, self.sweeps, self._submit
        )
        self.history = History(
            store, clock, self.ids, self._loop.readers, recording=options.recording
        )
        self.progress = Progress(store, clock, self.ids, self._loop.events)
        self.queue_stats = QueueStats(store, clock, self._tallies, self._loop.flows)
        self.leases = Leases(clock, self.ids, self._loop, self.streams, self._submit)
        self.workers = Workers(store, clock, self.ids, self._loop, self.streams)
        self._task: asyncio.Task[None] | None = None
        self._room = Room(store, clock, self._loop.inbox, disk_reserve=options.disk_reserve)

    @property
    def failure(self) -> asyncio.Future[BaseException]:
        """Set when the disk has failed: nothing can be stored any more."""
        return self._loop.failure

    @property
    def clock(self) -> Clock:
        """The clock that everything here goes by."""
        return self._clock

    @property
    def durable(self) -> tuple[bool, bool]:
        """Whether (acknowledgements and changes, enqueues) are synced before they are answered."""
        return self._options.durable, self._options.durable_enqueues

    @property
    def flushed_by(self) -> str:
        """How commits get to the disk: `linux-aio`, `io-uring` or `thread`."""
        return self._store.flushed_by

    @property
    def stats(self) -> Stats:
        """What it has done since it started."""
        return self._loop.stats

    @property
    def waiting(self) -> tuple[int, int]:
        """How many (new jobs, other changes) wait for the next ticks."""
        return self._loop.inbox.waiting

    @property
    def has_room(self) -> bool:
        """Whether the next tick would take more new jobs than wait already."""
        return self._loop.inbox.has_room

    def when_there_is_room(self, look: Callable[[], object]) -> None:
        """Have `look` called whenever there may be more room than before."""
        self._loop.inbox.when_taken = look

    def storage(self) -> Storage:
        """How large the files are, and how much larger they may get."""
        store = self._store
        return Storage(store.wal_bytes(), store.database_bytes(), store.free_bytes())

    def refusal(self) -> ZqError | None:
        """What new jobs are told at present, or None: they are taken."""
        return self._room.refusal()

    def quarantined(self) -> Quarantined:
        """Rows that were set aside, for they cannot be read; jobs by their ids."""
        count, latest = self._store.quarantined
        named = [
            row._replace(key=self.ids.text(int(row.key))) if row.source == "jobs" else row
            for row in latest
        ]
        return Quarantined(count, named)

    def start(self) -> None:
        """Begin to tick."""
        self._task = asyncio.create_task(self._loop.run(), name="zq-tick")

    async def stop(self) -> None:
        """Finish what waits, then end. Streams should be closed by then."""
        await self.sweeps.stop()
        self._loop.stop()
        if self._task is not None:
            await self._task
        await self._filter.close()

    def stop_delivering(self) -> None:
        """Claim nothing more; everything else goes on."""
        self._loop.delivering = False
        self.streams.dismiss_all()

    def when_nothing_is_held(self, callback: Callable[[], object]) -> None:
        """Call back once no stream holds a job, at once if that is so."""
        self.streams.when_empty(callback)

    @property
    def events(self) -> Events:
        """What happens to jobs, for those who listen."""
        return self._loop.events

    @property
    def waiters(self) -> Waiters:
        """Those who wait for jobs to be finished."""
        return self._loop.waiters

    async def ping(self) -> None:
        """Until the tick under way and the database's thread are done."""
        await self._store.ping()

    # Jobs in

    async def enqueue(
        self, jobs: Sequence[NewJob], reach: Reach, waiter: Waiter | None = None
    ) -> Accepted:
        """Store jobs, all or none, in order. Raises `QueueOutOfReach`, `KeyConflict`, `QueueFull`.

        From before the commit on, `waiter` waits for the first of them.
        """
        if reach is not EVERYWHERE:
            reach.require([job.queue for job in jobs])
        size = sum([job.payload_size for job in jobs])
        self._room.admit(len(jobs), size)
        now = self._clock.now_ms()
        keys = self._mint.take(len(jobs), now)
        command = Enqueue(keys=keys, jobs=jobs, now=now, size=size, reach=reach)
        if waiter is not None:
            self.waiters.watch(waiter, keys[0])
        reply = await self._submit(command)
        assert isinstance(reply, Enqueued)
        if reply.owners:
            await self._large_results(reply.owners.values())
        return Accepted(keys, now, reply)

    async def enqueue_and_wait(
        self, job: NewJob, reach: Reach, wait_ms: int
    ) -> tuple[Accepted, Outcome]:
        """Store one job and wait for it; where it is a duplicate, for its owner.

        Raises what `enqueue` raises, and `JobNotFound` where it is deleted.
        """
        with self.outcomes.waiter(wait_ms) as waiter:
            stored = await self.enqueue([job], reach, waiter)
            return stored, await self.outcomes.wait(waiter, reach, visible=True)

    # Changes

    async def patch(self, id: str, patch: Patch, reach: Reach) -> Job:
        """Change one job.

        Raises `JobNotFound`, `Unprocessable` where it is finished, or `QueueOutOfReach`.
        """
        reach.require(_target(patch))
        command = Change(key=self._known(id), text_id=id, patch=patch, reach=reach)
        return _job(await self._submit(command))

    async def delete(self, id: str, reach: Reach) -> None:
        """Delete one job in whatever state. Raises `JobNotFound`."""
        await self._submit(Delete(key=self._known(id), reach=reach))

    async def patch_all(self, filter: Filter, patch: Patch) -> int:
        """Change the unfinished jobs that match, slice by slice; how many were changed.

        Raises `QueueOutOfReach`.
        """
        filter.reach.require(_target(patch))
        return await self.sweeps.patch(filter, patch)

    async def delete_all(self, filter: Filter) -> int:
        """Delete the jobs that match; how many went."""
        if filter == EVERYTHING:
            return await self.clear()
        return await self.sweeps.delete(filter)

    async def clear(self, *, settings: bool = False) -> int:
        """Delete every job, settings of queues too if asked for; how many jobs there were."""
        count = await self._submit(Clear(settings=settings))
        assert isinstance(count, int)
        return count

    # Reading

    async def get(self, id: str, reach: Reach) -> Job:
        """A job with its payload. Raises `JobNotFound`."""
        job = await self._store.read(reads.get_job, self._known(id), reach, self._clock.now_ms())
        if job is None:
            raise JobNotFound
        return job

    async def list_jobs(
        self, filter: Filter, cursor: str | None, descending: bool, limit: int
    ) -> Page:
        """A page of jobs in the order of ids, beyond the cursor, with payloads."""
        if cursor is None:
            after = 2**63 - 1 if descending else -1
        else:
            before, behind = self.ids.position(cursor)
            after = behind if descending else before
        return await self._listing.page(filter, after, descending, limit)

    async def count(self, filter: Filter) -> int:
        """How many jobs match."""
        return await self._listing.count(filter)

    async def queues(self, reach: Reach) -> list[str]:
        """The queues that have jobs in any status, in byte order."""
        counts = await self._tallies.read()
        found = {queue for (queue, _), n in counts.items() if n and reach.covers(queue)}
        return sorted(found, key=str.encode)

    async def counts(self) -> Counter[tuple[str, Status]]:
        """How many jobs each queue has in each status."""
        return await self._tallies.read()

    async def list_errors(
        self, id: str, reach: Reach, after: int | None, descending: bool, limit: int
    ) -> tuple[list[ErrorRecord], bool]:
        """A job's failures beyond the attempt `after`, and whether more follow.

        Up to `limit` of them, fewer where their texts are large. Raises `JobNotFound`.
        """
        key, now = self._known(id), self._clock.now_ms()
        if await self._store.read(reads.get_row, key, reach, now) is None:
            raise JobNotFound
        start = after if after is not None else (2**63 - 1 if descending else 0)
        read = self._store.read if limit == 1 else self._store.readers.scans.read
        return await read(reads.errors_page, key, start, descending, limit)

    async def error(self, id: str, reach: Reach, attempt: int) -> ErrorRecord:
        """One failure. Raises `JobNotFound` or `ErrorRecordNotFound`."""
        records, _ = await self.list_errors(id, reach, attempt - 1, descending=False, limit=1)
        if not records or records[0].attempt != attempt:
            raise ErrorRecordNotFound
        return records[0]

    async def _submit(self, command: Command) -> object:
        """Put a command into the next tick and wait for its result."""
        if self.failure.done():
            raise Unavailable("the server is stopping after a failure of its disk")
        # A handler that is cancelled here loses the answer, not the command.
        return result_of(await self._loop.inbox.submit(command))

    async def _large_results(self, owners: Collection[Job]) -> None:
        """Fill in the results of jobs that lie beside, the first that make a page together.

        A job may be the owner of many duplicates, whose answers all have its result.
        """
        mentions = Counter(job.key for job in owners if job.result_beside)
        beside: list[int] = []
        room = reads.PAGE_BYTES
        for key, job in {job.key: job for job in owners if job.result_beside}.items():
            room -= (job.result_size or 0) * mentions[key]
            if room < 0:
                break
            beside.append(key)
        if beside:
            bodies = await self._store.read(reads.results, beside)
            for job in owners:
                job.result = bodies.get(job.key, job.result)

    def _known(self, id: str) -> int:
        key = self.ids.key(id)
        if key is None:
            raise JobNotFound
        return key


def _target(patch: Patch) -> tuple[str, ...]:
    """The queue that a patch moves jobs to, if it does."""
    return () if patch.queue is UNSET else (patch.queue,)


def _job(reply: object) -> Job:
    assert isinstance(reply, Job)
    return reply
