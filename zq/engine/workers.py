"""The verbs of workers that stream, and about them: who is there, and who is to get no more."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from zq.engine.loop import TickLoop
from zq.engine.players import Stream, Wish
from zq.engine.streams import Streams
from zq.model.clock import Clock
from zq.model.errors import WorkerNotFound
from zq.model.ids import IdCodec
from zq.model.job import Job
from zq.model.reach import Reach
from zq.store import reads
from zq.store.store import Store


class Worker(NamedTuple):
    """One open stream. `queues` of none are all within its reach; `since` is in milliseconds."""

    id: str
    queues: Sequence[str]
    prefetch: int
    concurrency: int
    held: Sequence[str]
    since: int
    draining: bool


class Workers:
    """A part of the engine. Who has a bounded reach sees only streams that lie within."""

    def __init__(
        self, store: Store, clock: Clock, ids: IdCodec, loop: TickLoop, streams: Streams
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._loop = loop
        self._streams = streams

    def open(
        self, queues: Sequence[str], reach: Reach, wish: Wish, unsent: Callable[[], int]
    ) -> Stream:
        """Open a take stream; close it with `close`, whatever happens.

        It takes from the queues named, or where none is, from all within reach. Raises
        `QueueOutOfReach`.
        """
        reach.require(queues)
        stream = self._streams.open(queues, reach, wish, self._clock.now_ms(), unsent)
        self._loop.wake()
        return stream

    def close(self, stream: Stream) -> None:
        """End a stream and give back what it holds, with the next tick."""
        rest = self._streams.close(stream)
        if rest is not None and not self._loop.failure.done():
            self._loop.inbox.submit(rest)

    def written(self, stream: Stream) -> None:
        """Say that a stream's peer has been sent something, so that it may have credit again."""
        if stream.choked:
            stream.choked = False
            self._streams.credit_changed(stream)
            self._loop.wake()

    async def large_payloads(self, jobs: Sequence[Job]) -> list[Job]:
        """Fill in the payloads that lie beside; jobs that are gone meanwhile are left out."""
        beside = [job.key for job in jobs if job.payload is None]
        if not beside:
            return list(jobs)
        bodies = await self._store.readers.deliveries.read(reads.payloads, beside)
        for job in jobs:
            if job.payload is None:
                job.payload = bodies.get(job.key)
        if gone := [job.key for job in jobs if job.payload is None]:
            # Deleted meanwhile, or their payloads alone are missing, and they would stay held.
            await self._loop.set_aside("jobs", gone)
        return [job for job in jobs if job.payload is not None]

    async def readable(self, jobs: Sequence[Job], stream: Stream) -> list[Job]:
        """Those of a stream's jobs that can be read: for whom a frame cannot be made of them."""
        await self._loop.set_aside("jobs", [job.key for job in jobs])
        return [job for job in jobs if job.key in stream.held]

    def end_all(self) -> None:
        """Make every stream finish its response in good order."""
        for stream in self._streams.all():
            stream.end()

    def all(self, reach: Reach) -> list[Worker]:
        """The workers, in the order in which they have come."""
        return [self._describe(stream) for stream in self._within(reach)]

    def drain(self, id: str, reach: Reach) -> list[Worker]:
        """Deliver nothing more to the streams of a worker. Raises `WorkerNotFound`."""
        meant = [stream for stream in self._within(reach) if name_of(stream) == id]
        if not meant:
            raise WorkerNotFound
        for stream in meant:
            rest = stream.drain()
            if rest is not None:
                self._loop.inbox.submit(rest)
        return [self._describe(stream) for stream in meant]

    def _within(self, reach: Reach) -> list[Stream]:
        return [stream for stream in self._streams.all() if stream.group.is_within(reach)]

    def _describe(self, stream: Stream) -> Worker:
        return Worker(
            name_of(stream),
            stream.group.queues or (),
            stream.wish.window,
            stream.wish.concurrency,
            self._ids.texts(stream.held),
            stream.since,
            stream.draining,
        )


def name_of(stream: Stream) -> str:
    """What its worker calls itself; one that does not is called by the number of its stream."""
    return stream.wish.worker or f"#{stream.number}"
