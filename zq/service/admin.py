"""The verbs about the whole server: health, figures, workers, and clearing it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from zq.engine.clock_steps import NotedStep
from zq.engine.delivery.liveness import WorkerFailure
from zq.engine.delivery.takers import Stream
from zq.engine.engine import Engine
from zq.engine.loop import Durability
from zq.engine.subscribers.figures import Histogram
from zq.model.clock import Clock
from zq.model.commands import AcknowledgeDamage, Clear
from zq.model.effects import Quarantined, Tally
from zq.model.errors import WorkerNotFound, ZqError
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.reach import Reach
from zq.store.api import Bloat, Store


class ServerHealth(NamedTuple):
    """How the server stores jobs, whether it refuses new ones, and which rows are damaged."""

    durability: Durability
    flushed_by: str
    """How commits reach the disk: `linux-aio`, `io-uring` or `thread`."""
    refusal: ZqError | None
    """The error that new jobs get at present; None if they are accepted."""
    quarantined: Quarantined
    """Rows that were set aside because they cannot be read. Jobs are named by their ids."""
    locked_since: int | None
    """When another program's lock on the database came in the way (ms); None if nothing does."""
    locked_by: ZqError
    """The answer to changes if that lasts."""
    clock_set: NotedStep | None
    """The latest large step of the wall clock since the start."""
    bloat: Bloat | None
    """The old versions of rows, in a store that keeps some."""
    slot: int | None
    """The slot of this server, if others may share its store."""
    servers: int
    """How many servers have the store now."""


class ServerFigures(NamedTuple):
    """Counts since the start, and the use of everything with a limit, in bytes."""

    jobs: Tally
    tick_rows: Histogram
    tick_seconds: Histogram
    fsync_seconds: Histogram
    is_accepting: bool
    """True if new jobs are accepted."""
    waiting_jobs: int
    waiting_changes: int
    streams: int
    wal_bytes: int
    database_bytes: int
    free_bytes: int | None
    lock_wait_s: float
    """How long another program's lock on the database has been in the way; 0 if nothing is."""
    quarantined: int
    """Rows and logs that were set aside and not acknowledged by an operator."""
    clock_steps: int
    """How often the wall clock was set by more than a minute."""
    clock_ahead_ms: int
    """How far the time on which durations run is ahead of the wall clock."""
    bloat: Bloat | None
    """The old versions of rows, in a store that keeps some."""


class OpenStream(NamedTuple):
    """One open stream. No `queues` means all within its reach; `since` is in milliseconds."""

    id: str
    queues: Sequence[str]
    prefetch: int
    concurrency: int
    held: Sequence[int]
    """The keys of its jobs, the oldest delivery first."""
    since: int
    draining: bool
    address: str
    client: str
    """The program that its peer says it is."""
    unsent_bytes: int
    """The bytes that wait for its peer to read them."""
    delivered: int
    """How many deliveries it has got since it is open."""
    reach: Reach
    """A stream that names no queues takes from all within this reach."""
    seen_at: int
    """When it was opened, or its worker has settled or renewed something last (ms)."""
    silent: bool
    """True if its worker has left out to renew the leases of its jobs."""
    failed: int
    """How many attempts it has reported as failed since it is open."""
    failures: Sequence[WorkerFailure]
    """The latest of them, the oldest first."""

    @property
    def busy(self) -> int:
        """How many of its `concurrency` slots have a job. It may hold more jobs than these."""
        return min(len(self.held), self.concurrency)

    def takes(self, queue: str) -> bool:
        """True if it takes from a queue."""
        return queue in self.queues if self.queues else self.reach.covers(queue)

    def is_within(self, reach: Reach) -> bool:
        """True if all queues that it takes from lie within a reach."""
        return all(map(reach.covers, self.queues or self.reach.prefixes))


class OpenLease(NamedTuple):
    """A job in flight whose lease has a deadline, and who has it."""

    job: JobRecord
    worker: str


class Admin:
    """The whole server. A caller with a bounded reach sees only workers that lie within it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdCodec,
        engine: Engine,
    ) -> None:
        self.when_cleared: list[Callable[[], object]] = []
        """Called when everything is deleted: whoever remembers some of it forgets that."""
        self._store = store
        self._clock = clock
        self._ids = ids
        self._engine = engine
        self.ping = store.ping
        """Waits until a tick under way and the store's thread are done."""

    def health(self) -> ServerHealth:
        """The present health of the server."""
        count, latest = self._store.quarantined
        named = [
            row._replace(key=self._ids.text(int(row.key))) if row.source == "jobs" else row
            for row in latest
        ]
        return ServerHealth(
            self._engine.durability,
            self._store.flushed_by,
            self._engine.admission.refusal(),
            Quarantined(count, named),
            self._engine.lock.since,
            self._engine.lock.refusal,
            self._engine.steps.latest,
            self._store.bloat(),
            self._store.slot if self._store.slots > 1 else None,
            self._store.servers(),
        )

    def figures(self) -> ServerFigures:
        """The work that the server has done, and the work that waits."""
        stats, store = self._engine.stats, self._store
        return ServerFigures(
            stats.jobs,
            stats.tick_rows,
            stats.tick_seconds,
            stats.fsync_seconds,
            self._engine.admission.refusal() is None,
            *self._engine.inbox.waiting,
            len(self._engine.streams),
            store.wal_bytes(),
            store.database_bytes(),
            store.free_bytes(),
            self._engine.lock.seconds(),
            store.quarantined.rows,
            self._engine.steps.count,
            store.steady.ahead,
            store.bloat(),
        )

    async def acknowledge_damage(self) -> int:
        """Note that an operator knows of all that was set aside so far. Return how many rows."""
        return await self._engine.inbox.ask(AcknowledgeDamage())

    async def clear(self) -> None:
        """Delete every job, and the settings and schemas of all queues."""
        await self._engine.inbox.ask(Clear(settings=True))
        for forget in self.when_cleared:
            forget()

    # Workers

    def workers(self, reach: Reach) -> list[OpenStream]:
        """The open streams, in the order of opening."""
        return [self._described(stream) for stream in self._within(reach)]

    def drain(self, worker: str, reach: Reach) -> list[OpenStream]:
        """Deliver no more jobs to the streams of a worker. Raises `WorkerNotFound`."""
        meant = [stream for stream in self._within(reach) if _name_of(stream) == worker]
        if not meant:
            raise WorkerNotFound
        for stream in meant:
            rest = stream.drain()
            if rest is not None:
                self._engine.inbox.give_back(rest)
        return [self._described(stream) for stream in meant]

    def drop(self, worker: str, reach: Reach) -> list[OpenStream]:
        """End the streams of a worker: their jobs go back. Raises `WorkerNotFound`."""
        meant = [stream for stream in self._within(reach) if _name_of(stream) == worker]
        if not meant:
            raise WorkerNotFound
        dropped = [self._described(stream) for stream in meant]
        for stream in meant:
            stream.end()
        return dropped

    def left_at(self, queue: str) -> int:
        """When the last stream that took from a queue was closed (ms); 0 if none was."""
        return self._engine.streams.departures.of(queue)

    def left_since(self, at: int) -> set[str] | None:
        """The queues of the streams that were closed since a time (ms); None if that is all."""
        return self._engine.streams.departures.since(at)

    async def leases(self, reach: Reach, limit: int) -> list[OpenLease]:
        """The leases with a deadline, the earliest deadline first."""
        jobs = await self._store.reads.leases(reach, limit)
        return [OpenLease(job, self._holder_of(job)) for job in jobs]

    def _holder_of(self, job: JobRecord) -> str:
        if job.claimant is not None:
            return job.claimant
        return self._engine.streams.name_of(job.holder) or f"#{job.holder}"

    def _described(self, stream: Stream) -> OpenStream:
        liveness = self._engine.liveness.of(stream)
        return OpenStream(
            _name_of(stream),
            stream.group.queues or (),
            stream.subscription.window,
            stream.subscription.concurrency,
            list(stream.held),
            stream.since,
            stream.draining,
            stream.subscription.address,
            stream.subscription.client,
            stream.unsent,
            stream.delivered,
            stream.group.reach,
            liveness.heard_at,
            liveness.is_silent(stream, self._clock.now_ms()),
            liveness.failed,
            list(liveness.failures),
        )

    def _within(self, reach: Reach) -> list[Stream]:
        return [stream for stream in self._engine.streams.all() if stream.group.is_within(reach)]


def _name_of(stream: Stream) -> str:
    """The name of its worker; the number of the stream if the worker has no name."""
    return stream.subscription.worker or f"#{stream.number}"
