"""The verbs about the whole server: how it is, what it has done, who works, and clearing it."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.engine.delivery.takers import Stream
from zq.engine.engine import Engine
from zq.engine.loop import Durability
from zq.engine.news.figures import Histogram
from zq.model.commands import Clear
from zq.model.damage import Quarantined
from zq.model.effects import Tally
from zq.model.errors import WorkerNotFound, ZqError
from zq.model.ids import IdCodec
from zq.model.reach import Reach
from zq.service.jobs import Admission
from zq.store.api import Store


class ServerHealth(NamedTuple):
    """What an acknowledgement waits for, why new jobs are refused, what is damaged."""

    durability: Durability
    flushed_by: str
    """How commits get to the disk: `linux-aio`, `io-uring` or `thread`."""
    refusal: ZqError | None
    """What new jobs are told at present, or None: they are taken."""
    quarantined: Quarantined
    """Rows that were set aside, for they cannot be read; jobs by their ids."""


class ServerFigures(NamedTuple):
    """What was counted since the start, and how much there is of what has limits. In bytes."""

    jobs: Tally
    tick_rows: Histogram
    tick_seconds: Histogram
    fsync_seconds: Histogram
    is_accepting: bool
    """Whether new jobs are taken."""
    waiting_jobs: int
    waiting_changes: int
    streams: int
    wal_bytes: int
    database_bytes: int
    free_bytes: int


class OpenStream(NamedTuple):
    """One open stream. `queues` of none are all within its reach; `since` is in milliseconds."""

    id: str
    queues: Sequence[str]
    prefetch: int
    concurrency: int
    held: Sequence[int]
    """The keys of its jobs, the oldest delivery first."""
    since: int
    draining: bool


class Admin:
    """The whole server. Whoever has a bounded reach sees only workers that lie within."""

    def __init__(
        self,
        store: Store,
        ids: IdCodec,
        engine: Engine,
        admission: Admission,
        durability: Durability,
    ) -> None:
        self._store = store
        self._ids = ids
        self._engine = engine
        self._admission = admission
        self._durability = durability
        self.ping = store.ping
        """Waits until the tick under way and the store's thread are done."""

    def health(self) -> ServerHealth:
        """How the server is."""
        count, latest = self._store.quarantined
        named = [
            row._replace(key=self._ids.text(int(row.key))) if row.source == "jobs" else row
            for row in latest
        ]
        return ServerHealth(
            self._durability,
            self._store.flushed_by,
            self._admission.refusal(),
            Quarantined(count, named),
        )

    def figures(self) -> ServerFigures:
        """What the server has done, and how much it has to do."""
        stats, store = self._engine.stats, self._store
        return ServerFigures(
            stats.jobs,
            stats.tick_rows,
            stats.tick_seconds,
            stats.fsync_seconds,
            self._admission.refusal() is None,
            *self._engine.inbox.waiting,
            len(self._engine.streams),
            store.wal_bytes(),
            store.database_bytes(),
            store.free_bytes(),
        )

    async def clear(self) -> None:
        """Delete every job, and what is set for queues."""
        await self._engine.inbox.ask(Clear(settings=True))

    # Workers

    def workers(self, reach: Reach) -> list[OpenStream]:
        """The open streams, in the order in which they have come."""
        return [_described(stream) for stream in self._within(reach)]

    def drain(self, worker: str, reach: Reach) -> list[OpenStream]:
        """Deliver nothing more to the streams of a worker. Raises `WorkerNotFound`."""
        meant = [stream for stream in self._within(reach) if _name_of(stream) == worker]
        if not meant:
            raise WorkerNotFound
        for stream in meant:
            rest = stream.drain()
            if rest is not None:
                self._engine.inbox.give_back(rest)
        return [_described(stream) for stream in meant]

    def _within(self, reach: Reach) -> list[Stream]:
        return [stream for stream in self._engine.streams.all() if stream.group.is_within(reach)]


def _described(stream: Stream) -> OpenStream:
    return OpenStream(
        _name_of(stream),
        stream.group.queues or (),
        stream.subscription.window,
        stream.subscription.concurrency,
        list(stream.held),
        stream.since,
        stream.draining,
    )


def _name_of(stream: Stream) -> str:
    """What its worker calls itself; one that does not is called by the number of its stream."""
    return stream.subscription.worker or f"#{stream.number}"
