"""The takers of jobs: streams, and claims that are answered once. A tick treats both alike."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from zq.engine.delivery.windows import ClaimWindow
from zq.model.commands import Claim, Return
from zq.model.job import JobRecord
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE, Reach

MOST_UNSENT = 1024 * 1024
"""A stream with more unsent bytes gets no more jobs until its peer has read some."""

FRAME_BYTES = 300
"""The approximate size of a frame besides its payload, to count unsent bytes."""


class Taker(Protocol):
    """A receiver of jobs."""

    number: int
    group: "ClaimGroup"
    terms: Terms | None
    counts_in: ClaimWindow | None
    """The window that its jobs count in, if they are claimed for one."""

    @property
    def is_done(self) -> bool:
        """True if it takes no more jobs. Jobs that were claimed for it are returned."""

    def credit(self, freed: int) -> int:
        """How many jobs it can take once `freed` of its jobs are settled."""

    def idle(self, freed: int) -> int:
        """How many of these jobs would begin to run at once."""

    def deliver(self, jobs: Sequence[JobRecord]) -> bool:
        """Give it claimed jobs. Return False if it takes no more."""


class ClaimGroup:
    """Takers with the same queue filter. They share one claim a tick.

    `queues` is None for all queues within reach, also future ones. Named queues lie within reach,
    so takers with different reaches share a group.

    `waiting` holds the takers that may have credit, in the order of their turns. `dry` means that
    the last claim found fewer jobs than it asked for, and that no queue of the group was touched
    since. `touched` has the queues that were since then, if the group names its queues and has been
    dry before; else it is None.
    """

    def __init__(self, queues: tuple[str, ...] | None, reach: Reach = EVERYWHERE) -> None:
        self.queues = queues
        self.reach = reach
        self.members = 0
        self.waiting: dict[Taker, None] = {}
        self.dry = False
        self.touched: set[str] | None = None

    def served(self, taker: Taker) -> None:
        """Let a taker that was given jobs wait behind the others, if it can take more."""
        if taker in self.waiting:
            del self.waiting[taker]
            if taker.credit(0) > 0:
                self.waiting[taker] = None

    def is_within(self, reach: Reach) -> bool:
        """True if all queues that it takes from lie within a reach."""
        return all(map(reach.covers, self.queues or self.reach.prefixes))


class Subscription(NamedTuple):
    """The request of a worker for its stream.

    It gets up to `window` jobs at once (0: the global limit), and runs `concurrency` of them at a
    time. With `control` it also receives notices. `stall_limit` holds where a queue has none.
    """

    window: int = 1
    worker: str = ""
    lease_ms: int | None = None
    concurrency: int = 1
    control: bool = False
    stall_limit: int | None = None
    address: str = ""
    """The address of the worker, for people."""
    client: str = ""
    """The program that its peer says it is."""
    resident: bool = False
    """True if it is a worker in this process, which ends with it."""


NoticeKind = Literal["cancel", "lease_lost", "drain"]


class StreamNotice(NamedTuple):
    """A message to a stream that is not a job."""

    kind: NoticeKind
    key: int | None = None
    lease: int | None = None


class Stream:
    """One open take stream. `unsent` counts the bytes that its connection has not sent yet."""

    def __init__(
        self,
        number: int,
        group: ClaimGroup,
        subscription: Subscription,
        since: int,
        unsent: Callable[[], int],
    ) -> None:
        self.number = number
        self.group = group
        self.subscription = subscription
        self.terms = None if subscription.lease_ms is None else Terms(subscription.lease_ms)
        self.counts_in: ClaimWindow | None = None
        self.since = since
        self.ended = False
        self.draining = False
        """An operator has drained it: it gets no more jobs, and may finish those that it holds."""
        self.choked = False
        """True if it got no credit because of unsent bytes. Their writer must report progress."""
        self.held: dict[int, int] = {}
        """Deliveries by key, the oldest first. These jobs count against the window."""
        self.delivered = 0
        """How many deliveries it has got so far."""
        self._lapsed = 0
        self._outbox: deque[JobRecord] = deque()
        self._outbox_bytes = 0
        self.notices: list[StreamNotice] = []
        """The notices that it has not received yet: see `next_notices`."""
        self._unsent = unsent
        self._wake: asyncio.Event = asyncio.Event()

    @property
    def unsent(self) -> int:
        """How many bytes wait for this stream's peer, in frames or not."""
        return self._outbox_bytes + self._unsent()

    @property
    def is_done(self) -> bool:
        return self.ended or self.draining

    def credit(self, freed: int) -> int:
        if self.is_done:
            return 0
        room = self.subscription.window - len(self.held) + freed
        if room > 0 and self.unsent > MOST_UNSENT:
            self.choked = True
            return 0
        return room

    def idle(self, freed: int) -> int:
        """How many of its places have no job once `freed` of its jobs are settled."""
        return max(self.subscription.concurrency - len(self.held) + freed, 0)

    def deliver(self, jobs: Sequence[JobRecord]) -> bool:
        """Queue claimed jobs for writing, unless it is to end."""
        if self.is_done:
            return False
        self.held.update([(job.key, job.deliveries) for job in jobs])
        self.delivered += len(jobs)
        self._outbox.extend(jobs)
        self._outbox_bytes += sum([job.payload_size for job in jobs]) + FRAME_BYTES * len(jobs)
        self._wake.set()
        return True

    def tell(self, kind: NoticeKind, key: int | None = None) -> None:
        """Queue a notice about the stream or one of its jobs, if it asked for notices."""
        if self.subscription.control:
            lease = None if key is None else self.held.get(key)
            self.notices.append(StreamNotice(kind, key, lease))
            self._wake.set()

    def drain(self) -> Return | None:
        """Deliver nothing more. Return the `Return` of the jobs that were not written yet."""
        if self.draining:
            return None
        self.draining = True
        unwritten = [job.key for job in self.next_jobs(self._outbox_bytes)]
        self.tell("drain")
        return Return(self.number, unwritten) if unwritten else None

    def lapse(self, key: int) -> None:
        """End the stream: a lease was over before its worker reported. It gets no more jobs."""
        self._lapsed += 1
        self.tell("lease_lost", key)
        self.end()

    def end(self) -> None:
        """End the stream: its handler completes the response."""
        self.ended = True
        self._wake.set()

    def nudge(self) -> None:
        """Wake the handler: one of its own timers has fired."""
        self._wake.set()

    def unfinished(self) -> frozenset[int]:
        """The jobs that its worker may have begun, if it leaves without a word.

        These are the oldest written deliveries, as many as it runs at a time. There are none if its
        end was agreed upon.
        """
        if self.draining or (self.ended and not self._lapsed):
            return frozenset()
        unwritten = {job.key for job in self._outbox}
        begun = [key for key in self.held if key not in unwritten]
        return frozenset(begun[: max(self.subscription.concurrency - self._lapsed, 0)])

    async def wait(self) -> None:
        """Return when there is something to write, the stream has to end, or `nudge` is called."""
        await self._wake.wait()
        self._wake.clear()

    def next_notices(self) -> list[StreamNotice]:
        """The notices that may be sent now. A notice about an unwritten job waits for that job."""
        if not self.notices:
            return []
        unwritten = {job.key for job in self._outbox}
        notices, self.notices = self.notices, []
        for notice in notices:
            if notice.key in unwritten:
                self.notices.append(notice)
        return [notice for notice in notices if notice.key not in unwritten]

    def next_jobs(self, most_bytes: int) -> list[JobRecord]:
        """The jobs to write next: at least one, however large. Settled jobs are left out."""
        held = self.held
        if self._outbox_bytes <= most_bytes:
            jobs = [job for job in self._outbox if held.get(job.key) == job.deliveries]
            self._outbox.clear()
            self._outbox_bytes = 0
            return jobs
        jobs, size = [], 0
        while self._outbox and (not jobs or size < most_bytes):
            job = self._outbox.popleft()
            weight = job.payload_size + FRAME_BYTES
            self._outbox_bytes -= weight
            if held.get(job.key) == job.deliveries:
                jobs.append(job)
                size += weight
        return jobs


NOBODY = Stream(0, ClaimGroup(()), Subscription(), 0, lambda: 0)
"""Stands for a stream that closed while a tick claimed for it, until its jobs are returned."""


class Claimer:
    """A claim of up to `most` jobs, which is answered once. They count in its window, if any.

    While a tick claims for it, only that tick can answer it: otherwise jobs that the tick commits
    would belong to a claimant who was told that there are none.
    """

    def __init__(self, number: int, group: ClaimGroup, most: int, terms: Terms) -> None:
        self.counts_in: ClaimWindow | None = None
        self.number = number
        self.group = group
        self.terms: Terms | None = terms
        self.leases: dict[int, int] = {}
        """The deliveries that it has received, by key."""
        self._jobs: list[JobRecord] = []
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._most = most
        self._in_tick = False
        self._is_over = False

    @property
    def is_done(self) -> bool:
        return self._decided.done()

    def credit(self, freed: int) -> int:
        return 0 if self._is_over or self.is_done else self._most

    def idle(self, freed: int) -> int:
        return self._most

    def enter_tick(self) -> None:
        """Note that a tick begins to claim for it."""
        self._in_tick = True

    def leave_tick(self) -> None:
        """Note that this tick has ended, and with it the wait if that was over meanwhile."""
        self._in_tick = False
        if self._is_over:
            self.give_up()

    def deliver(self, jobs: Sequence[JobRecord]) -> bool:
        if self.is_done:
            return False
        self.leases = {job.key: job.deliveries for job in jobs}
        self._jobs = list(jobs)
        self._decided.set_result(None)
        return True

    async def take(self) -> list[JobRecord]:
        """Wait for the answer and return its jobs. It forgets them, since they may be large."""
        await self._decided
        jobs, self._jobs = self._jobs, []
        return jobs

    def give_up(self) -> None:
        """Answer with no jobs, unless it has been answered, or a tick claims for it just now."""
        self._is_over = True
        if not (self._in_tick or self._decided.done()):
            self._decided.set_result(None)


class Plan(msgspec.Struct):
    """The claims of one tick, and the groups for which they are made."""

    claims: list[Claim] = []
    groups: list[ClaimGroup] = []
    hasty: list[Claimer] = []
    """Claimers that take part and do not wait."""
    claimers: list[Claimer] = []
    """All claimers that take part."""

    def admit(self, claimers: Sequence[Claimer]) -> None:
        """Let claimers take part."""
        self.claimers += claimers
        for claimer in claimers:
            claimer.enter_tick()

    def end(self) -> None:
        """Note that the tick has ended, whatever it has claimed."""
        for claimer in self.claimers:
            claimer.leave_tick()


NO_PLAN = Plan()
"""The plan of a tick that claims nothing. It stays empty."""


def unclaimed(leases: Mapping[int, int]) -> Return:
    """The return of claimed jobs that reached nobody, by their deliveries."""
    return Return(0, list(leases), leases=leases)
