"""The takers of jobs, the jobs that they hold, and the takers that the next tick claims for.

All of this is memory that is lost with the connections. Its record of jobs changes only after a
commit, from the result of the tick.
"""

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from zq.engine.after_commit import Committed
from zq.engine.delivery.takers import (
    NO_PLAN,
    NOBODY,
    Claimer,
    ClaimGroup,
    Plan,
    Stream,
    Subscription,
    Taker,
    unclaimed,
)
from zq.engine.delivery.windows import ClaimWindows
from zq.model.commands import AnyCommand, Claim, Enqueue, Fail, Return, Succeed, TickResult
from zq.model.ids import HOLDER_BITS
from zq.model.job import JobRecord
from zq.model.leasing import DiedStream, Holder, ResidentStream, Terms
from zq.model.reach import EVERYWHERE, Reach

MOST_GROUPS = 64
"""The most groups that one tick claims for. The others come next, in turn."""


class Credits(NamedTuple):
    """The jobs that the takers of a group can take: see `Claim`."""

    credits: list[tuple[int, int]]
    idle: int
    terms: dict[int, Terms]

    def claim(self, group: ClaimGroup, most: int) -> Claim:
        """The claim of a group for at most so many jobs."""
        credits = []
        for holder, credit in self.credits:
            if most <= 0:
                break
            credits.append((holder, min(credit, most)))
            most -= credit
        idle = min(self.idle, len(credits))
        return Claim(group.queues, credits, group.reach, self.terms or None, idle)


class ClaimGroups:
    """All groups. A group is hungry if some taker of it waits and some queue may have jobs."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, ...] | Reach, ClaimGroup] = {}
        self._by_queue: dict[str, set[ClaimGroup]] = {}
        self._ranging: set[ClaimGroup] = set()
        self.hungry: dict[ClaimGroup, None] = {}
        """The groups for which a tick would claim jobs, in the order of their turns."""
        self._emptied: set[str] = set()
        """Queues without jobs that could be claimed, as the claims of the present tick show."""

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def is_empty(self) -> bool:
        """True if nothing is kept."""
        return not (self._groups or self._by_queue or self._ranging or self.hungry)

    def join(self, names: tuple[str, ...], reach: Reach) -> ClaimGroup:
        """The group of a new taker. Without names it takes from all queues within reach."""
        group = self._groups.get(names or reach)
        if group is None:
            group = self._groups[names or reach] = ClaimGroup(names or None, reach)
            for queue in names:
                self._by_queue.setdefault(queue, set()).add(group)
            if not names:
                self._ranging.add(group)
        group.members += 1
        return group

    def leave(self, taker: Taker) -> None:
        """Take a taker out of its group. Nothing is kept of a group without members."""
        group = taker.group
        group.waiting.pop(taker, None)
        group.members -= 1
        if not group.members:
            self._groups.pop(group.queues or group.reach, None)
            self._ranging.discard(group)
            self.hungry.pop(group, None)
            for queue in group.queues or ():
                self._by_queue[queue].discard(group)
                if not self._by_queue[queue]:
                    del self._by_queue[queue]

    def of_queue(self, queue: str) -> list[ClaimGroup]:
        """The groups that take from a queue."""
        ranging = (group for group in self._ranging if group.reach.covers(queue))
        return [*self._by_queue.get(queue, ()), *ranging]

    def wait(self, taker: Taker) -> None:
        """Let a taker wait that may have credit."""
        taker.group.waiting.setdefault(taker)
        self._consider(taker.group)

    def touch(self, queues: Iterable[str]) -> None:
        """Note that queues may have ready jobs that they did not have before."""
        for queue in queues:
            for group in self.of_queue(queue):
                group.dry = False
                if group.touched is not None:
                    group.touched.add(queue)
                self._consider(group)

    def touch_all(self) -> None:
        """Note that any queue may have ready jobs that it did not have before."""
        for group in self._groups.values():
            group.dry = False
            if group.touched is not None:
                group.touched.update(group.queues or ())
            self._consider(group)

    def next(self) -> list[ClaimGroup]:
        """The hungry groups whose turn it is."""
        return list(islice(self.hungry, MOST_GROUPS))

    def ask(self, group: ClaimGroup, *, again: bool) -> None:
        """Note that a group has had its turn. If it comes `again`, it waits behind the others."""
        del self.hungry[group]
        if again:
            self.hungry[group] = None

    def served(self, group: ClaimGroup, *, short: bool) -> None:
        """Note that a group was asked, and whether it has got fewer jobs than it could take."""
        group.dry = short
        if short or not group.waiting:
            self.hungry.pop(group, None)
        if short and group.queues is not None:
            self._emptied |= group.touched or set()
            group.touched = set()

    def all_served(self) -> None:
        """Note that all groups of a tick were served. What it has emptied is empty for all.

        A group for which nothing else was touched is not asked: thousands may name one queue.
        """
        emptied, self._emptied = self._emptied, set()
        for queue in emptied:
            for group in self._by_queue.get(queue, ()):
                if group.touched and queue in group.touched:
                    group.touched.discard(queue)
                    if not group.touched:
                        group.dry = True
                        self.hungry.pop(group, None)

    def _consider(self, group: ClaimGroup) -> None:
        if group.waiting and not group.dry:
            self.hungry.setdefault(group)


MOST_CLAIMED = 2000
"""The most jobs that one claim brings. This limits a tick, and the cost of a large window."""

MOST_TAKERS = 256
"""The most takers that one claim serves. The others of a group come next, in turn."""

MOST_LEFT = 1024
"""The most closed streams whose workers are remembered."""


class GroupedQueues:
    """The queues of jobs in flight that belong to a group, by key.

    Once such a job is settled, the same tick can claim the next job of its group. Streams that
    found the queue empty must learn of that before the tick, not only after it.
    """

    def __init__(self) -> None:
        self.queues: dict[int, str] = {}

    def learn(self, result: TickResult) -> None:
        for _, key in result.ended:
            self.queues.pop(key, None)
        for jobs in result.claimed:
            self.queues.update([(job.key, job.queue) for job in jobs if job.group is not None])

    def settled(self, commands: Sequence[AnyCommand]) -> set[str]:
        """The queues in which the commands settle such jobs. It costs nothing if there are none."""
        queues: set[str] = set()
        if self.queues:
            for command in commands:
                if isinstance(command, Succeed):
                    queues.update(self.queues[key] for key in self.queues.keys() & command.keys)
                elif isinstance(command, Fail) and command.key in self.queues:
                    queues.add(self.queues[command.key])
        return queues


class Streams:
    """All open streams, and the claims that wait.

    `limit` is the most jobs in flight over all of them; 0 means no limit. It includes the `claimed`
    jobs that were in flight before the start. `submit` takes returns. `slot` is the slot of this
    server, which its holders carry. `died` are streams of the process before this one; numbers
    begin above `last_holder`.
    """

    def __init__(
        self,
        limit: int,
        claimed: int,
        submit: Callable[[Return], object],
        slot: int = 0,
        died: Sequence[DiedStream] = (),
        last_holder: int = 0,
    ) -> None:
        self.listens = claimed > 0
        """True if anybody takes jobs, or a job is in flight. Else ticks change nothing here."""
        self._limit = limit or 2**62
        self._claimed = claimed
        self._submit = submit
        self.stopped = False
        self._claimers: dict[int, Claimer] = {}
        self.hasty: list[Claimer] = []
        """Claims that the next tick answers, with jobs or without."""
        self._numbers = itertools.count(max(slot << HOLDER_BITS, last_holder) + 1)
        self._streams: dict[int, Stream] = {}
        self._groups = ClaimGroups()
        self.hungry = self._groups.hungry
        self._holders: dict[int, Stream] = {}
        self._grouped = GroupedQueues()
        self._windows = ClaimWindows()
        self._when_empty: Callable[[], object] | None = None
        self.departures = Departures()
        self.workers: dict[int, Holder] = {}
        """The workers by the numbers of their streams. The streams closed last are
        included, since jobs that they held may still be settled."""
        self._died = died
        self.workers.update({each.holder: Holder("", each.stall_limit) for each in died})
        self._left: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._streams)

    @property
    def is_hungry(self) -> bool:
        """True if a tick without commands could claim jobs, or answer a hasty claim."""
        return not self.stopped and bool(self.hasty or (self.hungry and self.free > 0))

    @property
    def free(self) -> int:
        """How many more jobs may be in flight."""
        return self._limit - len(self._holders) - self._claimed

    @property
    def claiming(self) -> int:
        """How many claims are under way."""
        return len(self._claimers)

    @property
    def is_empty(self) -> bool:
        """True if there are no takers, no groups and no jobs in flight."""
        takers = self._streams or self._claimers or self.hasty
        return self._groups.is_empty and not (takers or self._holders or self._claimed)

    def all(self) -> list[Stream]:
        """The open streams, in the order of opening."""
        return list(self._streams.values())

    def open(
        self,
        queues: Iterable[str],
        reach: Reach,
        subscription: Subscription,
        since: int,
        unsent: Callable[[], int],
    ) -> Stream:
        """Register a stream of some queues, open `since`. No queues means all within reach."""
        group = self._groups.join(tuple(sorted(set(queues))), reach)
        subscription = subscription._replace(window=subscription.window or self._limit)
        self.listens = True
        stream = Stream(next(self._numbers), group, subscription, since, unsent)
        self._streams[stream.number] = stream
        holder = Holder(subscription.worker, subscription.stall_limit)
        if any(holder):
            self.workers[stream.number] = holder
        self.credit_changed(stream)
        return stream

    def bury_died(self) -> None:
        """Return the jobs of streams that have died with their process. Each has stalled."""
        died, self._died = self._died, ()
        for each in died:
            self._submit(Return(each.holder, each.begun, frozenset(each.begun)))
            self._left.append(each.holder)

    @property
    def residents(self) -> list[ResidentStream]:
        """The open streams that would die with this process."""
        return [
            ResidentStream(
                stream.number, stream.subscription.stall_limit, stream.subscription.concurrency
            )
            for stream in self._streams.values()
            if stream.subscription.resident
        ]

    def ask(self, queue: str, most: int, terms: Terms, *, hasty: bool) -> Claimer:
        """Register a claimer that takes from a queue once. The next tick answers a hasty one.

        The caller must `dismiss` the claimer in the end.
        """
        group = self._groups.join((queue,), EVERYWHERE)
        self.listens = True
        claimer = Claimer(next(self._numbers), group, most, terms)
        self._claimers[claimer.number] = claimer
        if self.stopped:
            claimer.give_up()
        elif hasty:
            self.hasty.append(claimer)
        self.credit_changed(claimer)
        return claimer

    def hurry(self, claimer: Claimer) -> None:
        """Let the next tick answer a claimer, with jobs or without: its wait is over."""
        if not claimer.is_done:
            self.hasty.append(claimer)

    def dismiss(self, claimer: Claimer) -> None:
        """Forget a claimer. Jobs that are being claimed for it are returned."""
        claimer.give_up()
        del self._claimers[claimer.number]
        self._groups.leave(claimer)

    def end_all(self) -> None:
        """End every stream: its handler completes the response."""
        for stream in self._streams.values():
            stream.end()

    def stop(self) -> None:
        """Claim nothing more, and end the wait of all claims."""
        self.stopped = True
        for claimer in self._claimers.values():
            claimer.give_up()

    def when_empty(self, callback: Callable[[], object]) -> None:
        """Call back whenever no stream holds a job any more, also now if that is so."""
        self._when_empty = callback
        if not self._holders:
            callback()

    def name_of(self, holder: int | None) -> str | None:
        """The name of the worker of a stream, if it has said one."""
        worker = self.workers.get(holder or 0)
        return None if worker is None else worker.name or None

    def close(self, stream: Stream) -> Return | None:
        """Forget a stream. Return the `Return` of the jobs that it held, if any."""
        rest = give_back(stream) if stream.held else None
        stream.ended = True
        self._streams.pop(stream.number, None)
        if stream.number in self.workers:
            self._left.append(stream.number)
            if len(self._left) > MOST_LEFT:
                self.workers.pop(self._left.popleft(), None)
        self._groups.leave(stream)
        return rest

    def credit_changed(self, taker: Taker) -> None:
        """Note that a taker may have more credit than before."""
        if self._taker(taker.number) is not None:
            self._groups.wait(taker)

    def touch(self, queues: Iterable[str]) -> None:
        """Note that queues may have ready jobs that they did not have before."""
        self._groups.touch(queues)

    def touch_all(self, queues: Iterable[str] | None = None) -> None:
        """Note that some queues, or any, may have ready jobs that they did not have before."""
        if queues is None:
            self._groups.touch_all()
        else:
            self._groups.touch(queues)

    def holders(self, keys: Iterable[int]) -> list[Stream]:
        """The streams that hold some of these jobs."""
        return [self._holders[key] for key in keys if key in self._holders]

    def groups_of(self, queue: str) -> list[ClaimGroup]:
        """The groups that take from a queue."""
        return self._groups.of_queue(queue)

    def of_queue(self, queue: str) -> list[Stream]:
        """The open streams that take from a queue."""
        groups = self.groups_of(queue)
        return [stream for stream in self._streams.values() if stream.group in groups]

    def plan(self, commands: Sequence[AnyCommand]) -> Plan:
        """The claims of a tick that applies these commands first.

        Jobs that the commands settle free their places within the same tick: memory mirrors the
        committed leases, so the result of a settlement is known before. If a settlement has a
        bounded reach, it is not known, since memory has no queues: these places are free a tick
        later.
        """
        if self.stopped or not (self._groups or self.hasty):
            return NO_PLAN
        freed = self._freed(commands) if self._holders else Counter[Taker]()
        for stream in freed:
            self.credit_changed(stream)
        brought: list[Enqueue] = [c for c in commands if type(c) is Enqueue]
        if brought:
            self.touch({job.queue for command in brought for job in command.jobs})
        if self._grouped.queues:
            self.touch(self._grouped.settled(commands))
        plan = Plan()
        budget = self.free + freed.total()
        for group, credits in self._in_order(freed, min(budget, MOST_CLAIMED)):
            if budget <= 0:
                break
            self._groups.ask(group, again=True)
            claim = credits.claim(group, budget)
            plan.groups.append(group)
            plan.claims.append(claim)
            budget -= claim.limit
            if self._claimers:
                plan.admit([self._claimers[n] for n, _ in claim.credits if n in self._claimers])
        if self.hasty:
            self._settle_hasty(plan, budget)
        return plan

    def _settle_hasty(self, plan: Plan, budget: int) -> None:
        """Answer the claimers that do not wait, unless the plan claims for them."""
        asked = {number for claim in plan.claims for number, _ in claim.credits}
        hasty, self.hasty = self.hasty, []
        for claimer in hasty:
            if claimer.number in asked:
                plan.hasty.append(claimer)
            elif claimer.group.dry or budget <= 0:
                claimer.give_up()
            elif not claimer.is_done:
                self.hasty.append(claimer)

    def postpone(self, plan: Plan) -> None:
        """A planned tick has failed: its hasty claimers wait for the next tick."""
        self.hasty += plan.hasty
        if plan.claimers:
            plan.end()

    def learn(self, committed: Committed) -> None:
        """Hand out the jobs that a tick has claimed. Return those whose taker is gone."""
        for rest in self.apply(committed.result, committed.plan):
            self._submit(rest)
        if not committed.plan.claims:
            self.listens = not self.is_empty

    def apply(self, result: TickResult, plan: Plan) -> list[Return]:
        """Learn from a committed tick. The returns are for jobs whose holder is gone or hangs."""
        lapsed = self._notify(result) if result.revoked or result.lapsed else ()
        self._end(result.ended)
        if self._grouped.queues or result.claimed:
            self._grouped.learn(result)
        # Claims come last in a tick, so they have seen the jobs that the tick has made ready.
        self.touch(result.woken)
        orphans = [give_back(stream) for stream in lapsed if stream.held]
        for group, claim, jobs in zip(plan.groups, plan.claims, result.claimed, strict=False):
            orphans += self._deliver(jobs)
            self._groups.served(group, short=len(jobs) < claim.limit)
        self._groups.all_served()
        if result.left:
            self.touch(result.left)
        if len(result.claimed) < len(plan.claims):
            self.postpone(plan)
        elif plan.claimers:
            plan.end()
            for claimer in plan.hasty:
                claimer.give_up()
        if not self._holders and self._when_empty is not None:
            self._when_empty()
        return orphans

    def _end(self, ended: Sequence[tuple[int, int]]) -> None:
        """Remove ended leases, given as (holder, key). Their streams have credit again."""
        holders = {holder for holder, _ in ended}
        for holder in holders & self._streams.keys():
            self.credit_changed(self._streams[holder])
        self._claimed -= self._windows.leave(ended) if 0 in holders else 0
        for _, key in ended:
            self._holders.pop(key, NOBODY).held.pop(key, None)

    def _notify(self, result: TickResult) -> list[Stream]:
        """Tell streams which jobs they have lost. Return the streams whose lease has lapsed."""
        for key in result.revoked:
            self._holders.get(key, NOBODY).tell("cancel", key)
        lapsed: dict[Stream, None] = {}
        for key in result.lapsed:
            stream = self._holders.get(key, NOBODY)
            if stream is not NOBODY:
                stream.lapse(key)
                lapsed[stream] = None
        return list(lapsed)

    def _deliver(self, jobs: Sequence[JobRecord]) -> Iterator[Return]:
        """Give jobs to their takers. Yield returns for takers that are gone."""
        by_holder: defaultdict[int | None, list[JobRecord]] = defaultdict(list)
        for job in jobs:
            by_holder[job.holder].append(job)
        for holder, given in by_holder.items():
            assert holder is not None, "a claimed job has a holder"
            taker = self._taker(holder)
            if taker is not None and taker.deliver(given):
                taker.group.served(taker)
            else:
                taker = None
            is_streams = given[0].claimant is None
            if is_streams:
                stream = taker if isinstance(taker, Stream) else NOBODY
                self._holders.update([(job.key, stream) for job in given])
            else:
                self._claimed += self._windows.hold(taker.counts_in if taker else None, given)
            if taker is None:
                leases = {job.key: job.deliveries for job in given}
                yield Return(holder, list(leases)) if is_streams else unclaimed(leases)

    def _taker(self, number: int) -> Taker | None:
        return self._streams.get(number) or self._claimers.get(number)

    def _freed(self, commands: Sequence[AnyCommand]) -> Counter[Taker]:
        freed: Counter[Taker] = Counter()
        holders = self._holders
        for command in commands:
            if not isinstance(command, Succeed | Fail) or command.reach is not EVERYWHERE:
                continue
            if isinstance(command, Succeed):
                held = [key for key in command.keys if key in holders]
                if said := command.said:
                    held = [k for k in held if k not in said or self._holds(k, said[k].lease)]
                freed.update([holders[key] for key in held])
            elif self._holds(command.key, command.failure.lease):
                freed[holders[command.key]] += 1
        return freed

    def _holds(self, key: int, lease: int | None) -> bool:
        """True if a stream holds a job under the given delivery."""
        stream = self._holders.get(key)
        return stream is not None and lease in (None, stream.held.get(key))

    def _in_order(self, freed: Counter[Taker], most: int) -> list[tuple[ClaimGroup, Credits]]:
        """The groups whose turn it is with what they can take, those with idle places first.

        A worker whose places are all busy would let a job lie that another could run.
        """
        if most <= 0:
            return []
        asked = [(group, self._credits(group, freed, most)) for group in self._groups.next()]
        for group, credits in asked:
            if not credits.credits:
                self._groups.ask(group, again=False)
        asked = [each for each in asked if each[1].credits]
        if len(asked) > 1:
            asked.sort(key=lambda each: not each[1].idle)
        return asked

    def _credits(self, group: ClaimGroup, freed: Counter[Taker], most: int) -> Credits:
        """The number of jobs that each of up to `MOST_TAKERS` takers of a group can take, `most` in
        all."""
        idle: list[tuple[int, int]] = []
        busy: list[tuple[int, int]] = []
        terms: dict[int, Terms] = {}
        without: list[Taker] = []
        for taker in group.waiting:
            credit = min(taker.credit(freed[taker]), most)
            if credit <= 0:
                without.append(taker)
                continue
            places = min(taker.idle(freed[taker]), credit)
            if places:
                idle.append((taker.number, places))
            if credit > places:
                busy.append((taker.number, credit - places))
            if taker.terms is not None:
                terms[taker.number] = taker.terms
            most -= credit
            if most <= 0 or max(len(idle), len(busy)) == MOST_TAKERS:
                break
        # They come back when they have credit again, so no tick visits all streams.
        for taker in without:
            del group.waiting[taker]
        return Credits([*idle, *busy], len(idle), terms)


def give_back(stream: Stream) -> Return:
    """The return of all jobs that a stream holds, as it ends."""
    return Return(stream.number, list(stream.held), stream.unfinished())


MOST_DEPARTURES = 20_000
"""The most queues that are remembered; beyond that, the one that was left first is forgotten."""


class Departures:
    """Remembers for each queue when a stream that took from it was closed last, in milliseconds."""

    def __init__(self) -> None:
        self._by_queue: dict[str, int] = {}
        self._everywhere = 0

    def note(self, queues: Sequence[str] | None, at: int) -> None:
        """Note that a stream of some queues is closed. None means a stream of all queues."""
        if queues is None:
            self._everywhere = at
            return
        for queue in queues:
            self._by_queue.pop(queue, None)
            self._by_queue[queue] = at
            if len(self._by_queue) > MOST_DEPARTURES:
                del self._by_queue[next(iter(self._by_queue))]

    def since(self, at: int) -> set[str] | None:
        """The queues of the streams that were closed at a time or later; None means all queues."""
        if self._everywhere >= at:
            return None
        latest = takewhile(lambda queue: self._by_queue[queue] >= at, reversed(self._by_queue))
        return set(latest)

    def of(self, queue: str) -> int:
        """When the last stream that took from a queue was closed; 0 if none was."""
        return max(self._by_queue.get(queue, 0), self._everywhere)
