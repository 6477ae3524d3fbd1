"""Take streams: what each may hold, what it holds, and which ones the next tick claims for.

All of this is memory that dies with the connections. What it says of jobs changes only after a
commit, from the tick's result.
"""

import asyncio
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from zq.model.commands import Claim, Command, Enqueue, Fail, Succeed, TickResult
from zq.model.job import Job
from zq.model.outcome import Completion
from zq.model.reach import EVERYWHERE, Reach

MOST_UNSENT = 1024 * 1024
"""A stream with more unsent bytes than this gets no more jobs until its peer has read some."""

MOST_CLAIMED = 2000
"""Jobs that one claim takes: bounds a tick and what a stream's window can cost at once."""

MOST_PLAYERS = 256
"""Streams that one claim deals to. The others of a group come next, in turn."""

MOST_LEFT = 1024
"""Closed streams whose workers are remembered."""

FRAME_BYTES = 300
"""What a frame weighs besides its payload, roughly; for counting unsent bytes."""


class Stream:
    """One open take stream. `unsent` tells how many bytes its connection has not sent yet."""

    def __init__(
        self, number: int, group: "_Group", window: int, worker: str, unsent: Callable[[], int]
    ) -> None:
        self.number = number
        self.group = group
        self.window = window
        self.worker = worker
        self.ended = False
        self.choked = False
        """Was refused credit for its unsent bytes; whoever writes them has to say so."""
        self.held: dict[int, int] = {}
        """Deliveries by key: the jobs that count against the window."""
        self._outbox: deque[Job] = deque()
        self._outbox_bytes = 0
        self._unsent = unsent
        self._wake: asyncio.Event = asyncio.Event()

    @property
    def unsent(self) -> int:
        """Bytes that wait for this stream's peer, framed or not."""
        return self._outbox_bytes + self._unsent()

    def credit(self, freed: int) -> int:
        """How many jobs it can take once `freed` of those that it holds are settled."""
        if self.ended:
            return 0
        if self.unsent > MOST_UNSENT:
            self.choked = True
            return 0
        return self.window - len(self.held) + freed

    def deliver(self, jobs: Sequence[Job]) -> None:
        """Queue claimed jobs for writing."""
        self.held.update([(job.key, job.deliveries) for job in jobs])
        self._outbox.extend(jobs)
        self._outbox_bytes += sum([job.payload_size for job in jobs]) + FRAME_BYTES * len(jobs)
        self._wake.set()

    def end(self) -> None:
        """Make the stream's handler finish its response in good order."""
        self.ended = True
        self._wake.set()

    def nudge(self) -> None:
        """Let the handler look around: a timer of its own has fired."""
        self._wake.set()

    async def wait(self) -> None:
        """Until there is something to write, the stream is to end, or somebody nudges."""
        await self._wake.wait()
        self._wake.clear()

    def next_jobs(self, most_bytes: int) -> list[Job]:
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


class _Group:
    """Streams with the same queue filter. They share one claim a tick.

    `queues` of None are all within reach, those that come into being later too; queues that are
    named lie within it, so streams of any reach share their group.

    `waiting` holds those that may have credit, in the order of their turns. `dry` says that the
    last claim came back short and nothing has touched the group's queues since.
    """

    def __init__(self, queues: tuple[str, ...] | None, reach: Reach = EVERYWHERE) -> None:
        self.queues = queues
        self.reach = reach
        self.members = 0
        self.waiting: dict[Stream, None] = {}
        self.dry = False


class Plan:
    """The claims of one tick and the groups that they are for."""

    def __init__(self) -> None:
        self.claims: list[Claim] = []
        self.groups: list[_Group] = []


class Streams:
    """All open streams. `limit` bounds the jobs in flight over all of them; 0 is no bound."""

    def __init__(self, limit: int) -> None:
        self._limit = limit or 2**62
        self._numbers = itertools.count(1)
        self._streams: dict[int, Stream] = {}
        self._groups: dict[tuple[str, ...] | Reach, _Group] = {}
        self._by_queue: dict[str, set[_Group]] = {}
        self._ranging: set[_Group] = set()
        self._hungry: dict[_Group, None] = {}
        self._holders: dict[int, Stream] = {}
        self._when_empty: Callable[[], object] | None = None
        self.workers: dict[int, str] = {}
        """What workers call themselves, by the numbers of their streams: open ones and, as jobs
        that they held may still be settled, those closed last."""
        self._left: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._streams)

    def all(self) -> list[Stream]:
        """The open streams, in the order of opening."""
        return list(self._streams.values())

    def open(
        self,
        queues: Iterable[str],
        reach: Reach,
        window: int,
        worker: str,
        unsent: Callable[[], int],
    ) -> Stream:
        """Register a stream of some queues (none named: of all within reach).

        A window of 0 is the global limit.
        """
        names = tuple(sorted(set(queues)))
        group = self._groups.get(names or reach) or self._new_group(names, reach)
        group.members += 1
        stream = Stream(next(self._numbers), group, window or self._limit, worker, unsent)
        self._streams[stream.number] = stream
        if worker:
            self.workers[stream.number] = worker
        self.credit_changed(stream)
        return stream

    def when_empty(self, callback: Callable[[], object]) -> None:
        """Call back whenever no stream holds a job any more, and at once if that is so."""
        self._when_empty = callback
        if not self._holders:
            callback()

    def close(self, stream: Stream) -> list[int]:
        """Forget a stream; the keys of the jobs that have to go back."""
        stream.ended = True
        self._streams.pop(stream.number, None)
        if stream.worker:
            self._left.append(stream.number)
            if len(self._left) > MOST_LEFT:
                self.workers.pop(self._left.popleft(), None)
        group = stream.group
        group.waiting.pop(stream, None)
        group.members -= 1
        if not group.members:
            self._groups.pop(group.queues or group.reach, None)
            self._ranging.discard(group)
            self._hungry.pop(group, None)
            for queue in group.queues or ():
                self._by_queue[queue].discard(group)
                if not self._by_queue[queue]:
                    del self._by_queue[queue]
        return list(stream.held)

    def credit_changed(self, stream: Stream) -> None:
        """Say that a stream may be able to take more than before."""
        if stream.number in self._streams:
            stream.group.waiting.setdefault(stream)
            self._consider(stream.group)

    def touch(self, queues: Iterable[str]) -> None:
        """Say that queues may have ready jobs that they had not before."""
        for queue in queues:
            ranging = [group for group in self._ranging if group.reach.covers(queue)]
            for group in (*self._by_queue.get(queue, ()), *ranging):
                group.dry = False
                self._consider(group)

    def plan(self, commands: Sequence[Command]) -> Plan:
        """The claims of a tick that applies these commands first.

        Jobs that the commands settle free their slots within the same tick: memory mirrors the
        committed leases, so it knows what the settlements will find. Only of those with a bounded
        reach it does not, for it does not know queues: their slots are free a tick later.
        """
        freed = self._freed(commands)
        for stream in freed:
            self.credit_changed(stream)
        for command in commands:
            if isinstance(command, Enqueue):
                self.touch({job.queue for job in command.jobs})
        plan = Plan()
        budget = self._limit - len(self._holders) + freed.total()
        for group in list(self._hungry):
            if budget <= 0:
                break
            credits = self._credits(group, freed, min(budget, MOST_CLAIMED))
            # Whoever was asked goes to the end of the line, so that no group starves another.
            del self._hungry[group]
            if not credits:
                continue
            self._hungry[group] = None
            plan.groups.append(group)
            plan.claims.append(Claim(queues=group.queues, credits=credits, reach=group.reach))
            budget -= plan.claims[-1].limit
        return plan

    def apply(self, result: TickResult, plan: Plan) -> list[tuple[int, list[int]]]:
        """Learn from a committed tick.

        Answers (holder, keys) of jobs that were claimed for streams which closed meanwhile: they
        have to go back.
        """
        for holder in {holder for holder, _ in result.ended}:
            stream = self._streams.get(holder)
            if stream is not None:
                self.credit_changed(stream)
        for _, key in result.ended:
            self._holders.pop(key, _NOBODY).held.pop(key, None)
        # Claims come last in a tick: those that were made have seen whatever woke a queue.
        self.touch(result.woken)
        orphans: list[tuple[int, list[int]]] = []
        for group, claim, jobs in zip(plan.groups, plan.claims, result.claimed, strict=False):
            if len(jobs) < claim.limit:
                group.dry = True
                self._hungry.pop(group, None)
            orphans += self._deliver(jobs)
        if not self._holders and self._when_empty is not None:
            self._when_empty()
        return orphans

    def _deliver(self, jobs: Sequence[Job]) -> Iterator[tuple[int, list[int]]]:
        """Hand jobs to their streams; yields (holder, keys) for streams that are gone."""
        hands: defaultdict[int | None, list[Job]] = defaultdict(list)
        for job in jobs:
            hands[job.holder].append(job)
        for holder, hand in hands.items():
            assert holder is not None, "a claimed job has a holder"
            stream = self._streams.get(holder, _NOBODY)
            self._holders.update([(job.key, stream) for job in hand])
            if stream is _NOBODY:
                yield holder, [job.key for job in hand]
                continue
            stream.deliver(hand)
            waiting = stream.group.waiting
            if stream in waiting:
                del waiting[stream]
                waiting[stream] = None

    def _new_group(self, names: tuple[str, ...], reach: Reach) -> _Group:
        group = self._groups[names or reach] = _Group(names or None, reach)
        for queue in names:
            self._by_queue.setdefault(queue, set()).add(group)
        if not names:
            self._ranging.add(group)
        return group

    def _consider(self, group: _Group) -> None:
        if group.waiting and not group.dry:
            self._hungry.setdefault(group)

    def _freed(self, commands: Sequence[Command]) -> Counter[Stream]:
        freed: Counter[Stream] = Counter()
        holders = self._holders
        for command in commands:
            if not isinstance(command, Succeed | Fail) or command.reach is not EVERYWHERE:
                continue
            if isinstance(command, Succeed):
                stale = self._stale(command.said)
                freed.update(
                    holders[key] for key in command.keys if key in holders and key not in stale
                )
            elif command.key in holders:
                freed[holders[command.key]] += 1
        return freed

    def _stale(self, said: Mapping[int, Completion] | None) -> set[int]:
        """The jobs of which another delivery is held than the one that is acknowledged."""
        return {
            key
            for key, told in (said or {}).items()
            if told.lease is not None
            and key in self._holders
            and self._holders[key].held.get(key) != told.lease
        }

    def _credits(self, group: _Group, freed: Counter[Stream], most: int) -> list[tuple[int, int]]:
        credits: list[tuple[int, int]] = []
        without: list[Stream] = []
        for stream in group.waiting:
            credit = min(stream.credit(freed[stream]), most)
            if credit <= 0:
                without.append(stream)
                continue
            credits.append((stream.number, credit))
            most -= credit
            if most <= 0 or len(credits) == MOST_PLAYERS:
                break
        # They come back when they have credit again: nothing here visits all streams every tick.
        for stream in without:
            del group.waiting[stream]
        return credits


_NOBODY = Stream(0, _Group(()), 0, "", lambda: 0)
"""Stands for a stream that closed while a tick claimed for it, until its jobs are back."""
