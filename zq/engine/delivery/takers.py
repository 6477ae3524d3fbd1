"""Who takes jobs: streams, and claims that are answered once. A tick serves both alike."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from zq.model.commands import AnyCommand, Claim, Fail, Return, Succeed, TickResult
from zq.model.job import JobRecord
from zq.model.leasing import Terms
from zq.model.reach import EVERYWHERE, Reach

MOST_UNSENT = 1024 * 1024
"""A stream with more unsent bytes than this gets no more jobs until its peer has read some."""

FRAME_BYTES = 300
"""What a frame weighs besides its payload, roughly; for counting unsent bytes."""


class Taker(Protocol):
    """One who can be given jobs."""

    number: int
    group: "ClaimGroup"
    terms: Terms | None

    @property
    def is_done(self) -> bool:
        """Whether it takes nothing any more; what was claimed for it goes back."""

    def credit(self, freed: int) -> int:
        """How many jobs it can take once `freed` of those that it holds are settled."""

    def deliver(self, jobs: Sequence[JobRecord]) -> None:
        """Give it claimed jobs."""


class ClaimGroup:
    """Takers with the same queue filter. They share one claim a tick.

    `queues` of None are all within reach, those that come into being later too; queues that are
    named lie within it, so takers of any reach share their group.

    `waiting` holds those that may have credit, in the order of their turns. `dry` says that the
    last claim came back short and nothing has touched the group's queues since.
    """

    def __init__(self, queues: tuple[str, ...] | None, reach: Reach = EVERYWHERE) -> None:
        self.queues = queues
        self.reach = reach
        self.members = 0
        self.waiting: dict[Taker, None] = {}
        self.dry = False

    def is_within(self, reach: Reach) -> bool:
        """Whether nothing that it takes from lies beyond a reach."""
        return all(map(reach.covers, self.queues or self.reach.prefixes))


class Subscription(NamedTuple):
    """What a worker asks of its stream.

    Up to `window` jobs at once (0: the global limit), of which it runs `concurrency` at a time.
    With `control` it wants to be told more than jobs.
    """

    window: int = 1
    worker: str = ""
    lease_ms: int | None = None
    concurrency: int = 1
    control: bool = False


NoticeKind = Literal["cancel", "lease_lost", "drain"]


class StreamNotice(NamedTuple):
    """Something that a stream is told beside jobs."""

    kind: NoticeKind
    key: int | None = None
    lease: int | None = None


class Stream:
    """One open take stream. `unsent` tells how many bytes its connection has not sent yet."""

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
        self.since = since
        self.ended = False
        self.draining = False
        """It is given no more jobs, for somebody asked for that; what it holds it may finish."""
        self.choked = False
        """Was refused credit for its unsent bytes; whoever writes them has to say so."""
        self.held: dict[int, int] = {}
        """Deliveries by key, the oldest first: the jobs that count against the window."""
        self._lapsed = 0
        self._outbox: deque[JobRecord] = deque()
        self._outbox_bytes = 0
        self.notices: list[StreamNotice] = []
        """What it has not been told yet: see `next_notices`."""
        self._unsent = unsent
        self._wake: asyncio.Event = asyncio.Event()

    @property
    def unsent(self) -> int:
        """Bytes that wait for this stream's peer, framed or not."""
        return self._outbox_bytes + self._unsent()

    @property
    def is_done(self) -> bool:
        return self.ended or self.draining

    def credit(self, freed: int) -> int:
        """How many jobs it can take once `freed` of those that it holds are settled."""
        if self.is_done:
            return 0
        if self.unsent > MOST_UNSENT:
            self.choked = True
            return 0
        return self.subscription.window - len(self.held) + freed

    def deliver(self, jobs: Sequence[JobRecord]) -> None:
        """Queue claimed jobs for writing."""
        self.held.update([(job.key, job.deliveries) for job in jobs])
        self._outbox.extend(jobs)
        self._outbox_bytes += sum([job.payload_size for job in jobs]) + FRAME_BYTES * len(jobs)
        self._wake.set()

    def tell(self, kind: NoticeKind, key: int | None = None) -> None:
        """Queue a notice about itself or a job that it holds, if it wants to hear of such."""
        if self.subscription.control:
            lease = None if key is None else self.held.get(key)
            self.notices.append(StreamNotice(kind, key, lease))
            self._wake.set()

    def drain(self) -> Return | None:
        """Deliver nothing more; what has to go back, for it has not been written yet."""
        if self.draining:
            return None
        self.draining = True
        unwritten = [job.key for job in self.next_jobs(self._outbox_bytes)]
        self.tell("drain")
        return Return(self.number, unwritten) if unwritten else None

    def lapse(self, key: int) -> None:
        """End, for a lease was over before its worker was heard of: it is given nothing more."""
        self._lapsed += 1
        self.tell("lease_lost", key)
        self.end()

    def end(self) -> None:
        """Make the stream's handler finish its response in good order."""
        self.ended = True
        self._wake.set()

    def nudge(self) -> None:
        """Let the handler look around: a timer of its own has fired."""
        self._wake.set()

    def unfinished(self) -> frozenset[int]:
        """The jobs that its worker must be taken to have begun, where it goes without a word.

        Those are the oldest deliveries of what was written, as many as it runs at a time. There are
        none where its end was agreed upon.
        """
        if self.draining or (self.ended and not self._lapsed):
            return frozenset()
        unwritten = {job.key for job in self._outbox}
        begun = [key for key in self.held if key not in unwritten]
        return frozenset(begun[: max(self.subscription.concurrency - self._lapsed, 0)])

    async def wait(self) -> None:
        """Until there is something to write, the stream is to end, or somebody nudges."""
        await self._wake.wait()
        self._wake.clear()

    def next_notices(self) -> list[StreamNotice]:
        """What it is to be told now. What is about a job that is not written yet waits for it."""
        if not self.notices:
            return []
        unwritten = {job.key for job in self._outbox}
        notices, self.notices = self.notices, []
        for notice in notices:
            if notice.key in unwritten:
                self.notices.append(notice)
        return [notice for notice in notices if notice.key not in unwritten]

    def next_jobs(self, most_bytes: int) -> list[JobRecord]:
        """Jobs to write next; one at least, however large. Those settled meanwhile are left out."""
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


class Claimer:
    """One who claims up to `most` jobs, once."""

    def __init__(self, number: int, group: ClaimGroup, most: int, terms: Terms) -> None:
        self.number = number
        self.group = group
        self.terms: Terms | None = terms
        self.leases: dict[int, int] = {}
        """Deliveries by key: what it has been given."""
        self._jobs: list[JobRecord] = []
        self._decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._most = most

    @property
    def is_done(self) -> bool:
        return self._decided.done()

    def credit(self, freed: int) -> int:
        return 0 if self.is_done else self._most

    def deliver(self, jobs: Sequence[JobRecord]) -> None:
        self.leases = {job.key: job.deliveries for job in jobs}
        self._jobs = list(jobs)
        self._decided.set_result(None)

    async def take(self) -> list[JobRecord]:
        """The jobs, when it is decided. It forgets them: they may be large."""
        await self._decided
        jobs, self._jobs = self._jobs, []
        return jobs

    def give_up(self) -> None:
        """Answer with nothing, unless it is decided already."""
        if not self._decided.done():
            self._decided.set_result(None)


class Plan:
    """The claims of one tick and the groups that they are for."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.groups: list[ClaimGroup] = []
        self.hasty: list[Claimer] = []
        """Claimers that take part and do not wait."""


NO_PLAN = Plan()
"""For ticks that claim nothing; it stays empty."""


class GroupedQueues:
    """The queues of the jobs of groups that are in flight, by key.

    Once such a job is settled, the next of its group can be claimed by the same tick. Streams that
    have found nothing more in the queue have to hear of it before that tick, and not only after it.
    """

    def __init__(self) -> None:
        self.queues: dict[int, str] = {}

    def learn(self, result: TickResult) -> None:
        """Learn from a committed tick."""
        for _, key in result.ended:
            self.queues.pop(key, None)
        for jobs in result.claimed:
            self.queues.update([(job.key, job.queue) for job in jobs if job.group is not None])

    def settled(self, commands: Sequence[AnyCommand]) -> set[str]:
        """The queues in which the commands settle such jobs. It costs nothing where none is."""
        queues: set[str] = set()
        if self.queues:
            for command in commands:
                if isinstance(command, Succeed):
                    queues.update(self.queues[key] for key in self.queues.keys() & command.keys)
                elif isinstance(command, Fail) and command.key in self.queues:
                    queues.add(self.queues[command.key])
        return queues


def give_back(stream: Stream) -> Return:
    """What a stream holds, to be made ready again, now that it is to end."""
    return Return(stream.number, list(stream.held), stream.unfinished())


def unclaimed(leases: Mapping[int, int]) -> Return:
    """Claimed jobs, by their deliveries, of which nobody has heard."""
    return Return(0, list(leases), leases=leases)
