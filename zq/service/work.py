"""The verbs of workers: taking jobs, holding them, and settling them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from zq.engine.delivery.liveness import StreamLiveness, WorkerFailure
from zq.engine.delivery.streams import Streams
from zq.engine.delivery.takers import Claimer, Stream, Subscription, unclaimed
from zq.engine.delivery.windows import ClaimWindow
from zq.engine.inbox import Inbox
from zq.engine.subscribers.events import EventHub
from zq.model.clock import Clock
from zq.model.commands import (
    Extend,
    Extended,
    Fail,
    NoteResidents,
    Release,
    SetAside,
    Settled,
    Succeed,
)
from zq.model.errors import NotInFlight, StaleLease, TooLarge, ZqError
from zq.model.events import EventRecord, EventType
from zq.model.ids import IdCodec
from zq.model.job import JobRecord
from zq.model.leasing import Residents, Terms
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.model.settling import Completion, Failure
from zq.store.api import Store

MOST_SAID = 200
"""The characters of a failure that are kept with the stream of its worker."""

NOTHING_REFUSED = Settled(frozenset())


class Work:
    """Deliveries and their settlement.

    Results have at most `max_result` bytes. `ids` name jobs in messages.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdCodec,
        inbox: Inbox,
        streams: Streams,
        liveness: StreamLiveness,
        events: EventHub,
        max_result: int,
    ) -> None:
        self._reads = store.reads
        self._clock = clock
        self._ids = ids
        self._inbox = inbox
        self._streams = streams
        self._liveness = liveness
        self._events = events
        self._max_result = max_result

    # Streams

    def open(
        self,
        queues: Sequence[str],
        reach: Reach,
        subscription: Subscription,
        unsent: Callable[[], int],
    ) -> Stream:
        """Open a take stream; close it with `close`, whatever happens.

        It takes from the named queues; if none is named, from all within reach. Raises
        `QueueOutOfReach`.
        """
        if reach is not EVERYWHERE:
            reach.require(queues)
        now = self._clock.now_ms()
        stream = self._streams.open(queues, reach, subscription, now, unsent)
        if subscription.resident:
            self._note_residents(stream)
        self._liveness.opened(stream)
        self._inbox.awake.set()
        return stream

    def _note_residents(self, stream: Stream) -> None:
        """Have a new stream noted by the tick that may give it the first job, or by one before."""
        residents = Residents(self._clock.boot, self._streams.residents)
        try:
            self._inbox.submit(NoteResidents(residents))
        except ZqError:
            self._streams.close(stream)
            raise

    def close(self, stream: Stream) -> None:
        """End a stream. The next tick returns its jobs."""
        rest = self._streams.close(stream)
        self._liveness.closed(stream)
        self._streams.departures.note(stream.group.queues, self._clock.now_ms())
        if rest is not None:
            self._inbox.give_back(rest)

    def relieved(self, stream: Stream) -> None:
        """Say that a choked stream has less to send than it had: it may have credit again."""
        stream.choked = False
        self._streams.credit_changed(stream)
        self._inbox.awake.set()

    async def large_payloads(self, jobs: Sequence[JobRecord]) -> list[JobRecord]:
        """Fill in payloads that are stored apart. Jobs that were deleted are left out."""
        beside = [job.key for job in jobs if job.payload is None]
        if not beside:
            return list(jobs)
        bodies = await self._reads.payloads(beside)
        for job in jobs:
            if job.payload is None:
                job.payload = bodies.get(job.key)
        if gone := [job.key for job in jobs if job.payload is None]:
            # A job was deleted, or only its payload is missing. In that case it would stay held.
            await self._inbox.ask(SetAside("jobs", gone))
        return [job for job in jobs if job.payload is not None]

    async def readable(self, jobs: Sequence[JobRecord], stream: Stream) -> list[JobRecord]:
        """Set aside those of a stream's jobs that cannot be read. Return the others."""
        await self._inbox.ask(SetAside("jobs", [job.key for job in jobs]))
        return [job for job in jobs if job.key in stream.held]

    # Claims

    @property
    def has_stopped(self) -> bool:
        """True if no more jobs are delivered, for the server is stopping."""
        return self._streams.stopped

    @contextmanager
    def claimer(
        self,
        queue: str,
        reach: Reach,
        most: int,
        terms: Terms,
        wait_ms: int,
        window: ClaimWindow | None = None,
    ) -> Iterator[Claimer]:
        """A claimer of up to `most` jobs, within the context.

        The next tick decides which jobs it can `take`. With a `wait_ms` it waits for jobs up to
        that time. If the context ends with an exception, the claimant cannot have received them,
        and they are returned at once. Jobs count in a `window`, if there is one. Raises
        `QueueOutOfReach`.
        """
        reach.require([queue])
        self._inbox.check_open()
        claimer = self._streams.ask(queue, most, terms, hasty=not wait_ms)
        claimer.counts_in = window
        hurry = partial(self.hurry, claimer)
        timer = self._clock.call_later(wait_ms / 1000, hurry) if wait_ms else None
        self._inbox.awake.set()
        try:
            yield claimer
        except BaseException:
            if claimer.leases:
                self._inbox.give_back(unclaimed(claimer.leases))
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._streams.dismiss(claimer)

    def hurry(self, claimer: Claimer) -> None:
        """End the wait of a claimer with the next tick, which may still find jobs for it."""
        self._streams.hurry(claimer)
        self._inbox.awake.set()

    # Held jobs

    async def succeed(
        self,
        keys: Sequence[int],
        reach: Reach,
        said: Mapping[int, Completion] | None = None,
        late: str | None = None,
    ) -> Settled:
        """Acknowledge jobs. Return those that were left unchanged.

        `said` has the completions of some of them. A `late` claimant also acknowledges jobs whose
        lease is over, while nobody else has taken them. Raises `TooLarge` if a result is too large,
        and then acknowledges nothing.
        """
        if not keys:
            return NOTHING_REFUSED
        size = 0
        if said:
            for key, told in said.items():
                if told.result_size > self._max_result:
                    raise TooLarge(
                        f"the result of job {self._ids.text(key)} has {told.result_size} bytes and"
                        f" may have {self._max_result}: keep it elsewhere and send where, or raise"
                        " --max-result"
                    )
                size += told.result_size
        command = Succeed(keys=keys, reach=reach, said=said, size=size, late=late)
        return await self._inbox.ask(command)

    async def fail(
        self, key: int, failure: Failure, reach: Reach, late: str | None = None
    ) -> JobRecord:
        """Report a failure. Return the changed job. Raises `NotInFlight` or `StaleLease`.

        `late` is as for `succeed`.
        """
        holders = self._streams.holders([key])
        job = await self._inbox.ask(Fail(key=key, failure=failure, reach=reach, late=late))
        for stream in holders:
            said = WorkerFailure(
                self._clock.now_ms(), key, job.queue, job.type, failure.message[:MOST_SAID]
            )
            self._liveness.failed(stream, said)
        return job

    async def extend(
        self,
        keys: Sequence[int],
        leases: Mapping[int, int],
        lease_ms: int,
        reach: Reach,
        *,
        resumed: bool = False,
    ) -> Extended:
        """Set the deadlines of leases to `lease_ms` from now, whoever holds them.

        `leases` names the delivery of those jobs for which it matters. With `resumed`, a stall of
        each is taken back: its worker has only lost a connection, and goes on.
        """
        self._liveness.heard(keys)
        command = Extend(keys, leases, lease_ms, reach, resumed)
        return await self._inbox.ask(command)

    async def release(
        self, keys: Sequence[int], leases: Mapping[int, int], delay_ms: int, reach: Reach
    ) -> Settled:
        """Return jobs, to be ready at once or after a delay. No attempt is spent."""
        command = Release(keys=keys, leases=leases, delay_ms=delay_ms, reach=reach)
        return await self._inbox.ask(command)

    async def progress(self, key: int, data: str, lease: int | None, reach: Reach) -> None:
        """Tell listeners of the progress of a job in flight. `data` is JSON text and is not stored.

        Raises `NotInFlight`, or `StaleLease` if the named delivery has ended.
        """
        now = self._clock.now_ms()
        job = await self._reads.row(key, reach, now)
        if job is None:
            raise NotInFlight
        held = job.status is Status.IN_FLIGHT
        if lease is not None and not (held and job.deliveries == lease):
            raise StaleLease
        if not held:
            raise NotInFlight
        self._liveness.heard([key])
        event = EventRecord(
            EventType.PROGRESS, key, job.queue, job.unique_key, job.attempts + 1, data
        )
        self._events.add(now, [event])
