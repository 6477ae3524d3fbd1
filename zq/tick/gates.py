"""Which queues a claim may take from while gates stand somewhere: paused, rate, concurrency.

A gate is a queue's, and is asked when jobs are claimed; opening or shutting it touches no job.

Claims remember how far they have seen that nothing is for them: the places where their walks begin.
A paused queue's backlog, as a rule, is older than what comes to other queues, and lies before it in
the index. Whoever has walked past it once begins behind it from then on. What becomes ready before
that place afterwards is in a queue that its transaction names as woken, so only these are asked.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple, Self

from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.rate import Bucket
from zq.model.reach import EVERYWHERE, Reach
from zq.tick.rulebook import Rulebook
from zq.tick.work import UnitOfWork

Place = tuple[int, int]
"""The priority and the key of a job: where it stands in dispatch order."""

START: Place = (-1, -1)

MOST_REOPENED = 10_000
"""Queues that are worth asking one by one; claims for which it would be more begin at the start."""

MOST_FRONTIERS = 64
"""Reaches that are remembered: keys are many, those whose workers wait are few."""


class Frontier(NamedTuple):
    """What is known for one reach: up to `place`, only named queues have jobs that it may take."""

    place: Place = START
    woken: frozenset[str] = frozenset()
    """Queues in which something may have become ready since."""
    held_back: frozenset[str] = frozenset()
    """Queues with a rate or a concurrency that had none to spare."""
    few: bool = False
    """Whether so few queues have ready jobs that asking each costs less than walking."""

    def reopened(self, queues: set[str]) -> Self:
        """The same once something has become ready in some queues."""
        if self.place == START:
            return self
        woken = self.woken | queues
        return self._replace(woken=woken) if len(woken) <= MOST_REOPENED else type(self)()


NOWHERE = Frontier()


class Gates:
    """What the gates have in memory between transactions: it follows what has been committed."""

    def __init__(self) -> None:
        self._frontiers: dict[Reach, Frontier] = {}
        self._buckets: dict[str, Bucket] = {}
        self._found: dict[Reach, Frontier] = {}
        self._taken: Counter[str] = Counter()
        """Jobs taken of queues with limits by the transaction under way."""
        self._asked: set[str] = set()
        """The queues whose rate it has asked for, even where nothing came of it."""
        self.in_use = False
        """Whether there is anything to learn of a transaction; as a rule no gate was asked for."""

    def forget(self) -> None:
        """Forget what a transaction has noted that has come to its end."""
        self._found.clear()
        self._taken.clear()
        self._asked.clear()

    def frontier(self, reach: Reach) -> Frontier:
        """Where claims within a reach begin."""
        return self._found.get(reach) or self._frontiers.get(reach, NOWHERE)

    def begin_at(self, reach: Reach, frontier: Frontier) -> None:
        """Let claims begin there from now on, if the transaction is committed."""
        self._found[reach] = frontier
        self.in_use = True

    def sort(
        self, work: UnitOfWork, queues: Collection[str], now: float
    ) -> tuple[list[str], dict[str, int]]:
        """Of some queues those that are open to claims, and those for so many jobs at most."""
        book = work.rulebook
        if not book.has_gates:
            return list(queues), {}
        free = [q for q in queues if q not in book.paused and q not in book.limited]
        bounds = self.allowances(work, [q for q in queues if q not in book.paused], now)
        return free, {queue: most for queue, most in bounds.items() if most > 0}

    def allowances(self, work: UnitOfWork, queues: Iterable[str], now: float) -> dict[str, int]:
        """How many jobs may be taken now of those of the queues that have a limit."""
        limited = [queue for queue in queues if queue in work.rulebook.limited]
        if not limited:
            return {}
        self.in_use = True
        held = dict(work.tx.table("read_in_flight", queues=limited))
        allowed: dict[str, int] = {}
        for queue in limited:
            settings = work.rulebook.of(queue)
            bounds: list[int] = []
            if settings.concurrency is not None:
                in_flight = held.get(queue, 0) + work.counts[queue, Status.IN_FLIGHT]
                bounds.append(settings.concurrency - in_flight)
            if settings.rate is not None:
                tokens = self._bucket(queue, settings.rate, now).tokens(now)
                bounds.append(tokens - self._taken[queue])
                self._asked.add(queue)
            allowed[queue] = min(bounds)
        return allowed

    def note(self, work: UnitOfWork, jobs: Iterable[JobRecord]) -> None:
        """Remember what was claimed of queues with limits, until it is committed."""
        if limited := work.rulebook.limited:
            self._taken.update([job.queue for job in jobs if job.queue in limited])

    def learn(self, work: UnitOfWork, now: float) -> dict[str, float]:
        """Follow a committed transaction. When the queues open again whose rate was asked for."""
        book = work.rulebook
        gated = not book.is_empty and book.has_gates
        self._learn_frontiers(work.effects.woken, gated=gated)
        openings = self._learn_rates(book, now) if gated else {}
        if not gated:
            self._buckets.clear()
        self.forget()
        self.in_use = bool(self._frontiers or self._buckets)
        return openings

    def _learn_rates(self, book: Rulebook, now: float) -> dict[str, float]:
        """Spend what was taken; when the queues open again that have nothing left."""
        openings: dict[str, float] = {}
        for queue in self._asked | self._taken.keys():
            if queue in self._buckets and book.of(queue).rate is not None:
                bucket = self._buckets[queue]
                bucket.spend(self._taken[queue], now)
                if not bucket.tokens(now):
                    openings[queue] = bucket.opens(now)
        if not self._buckets.keys() <= book.limited:
            self._buckets = {q: b for q, b in self._buckets.items() if book.of(q).rate is not None}
        return openings

    def _bucket(self, queue: str, rate: float, now: float) -> Bucket:
        bucket = self._buckets.get(queue)
        if bucket is None:
            bucket = self._buckets[queue] = Bucket(rate, now)
        elif bucket.rate != rate:
            bucket.change(rate, now)
        return bucket

    def _learn_frontiers(self, woken: set[str], *, gated: bool) -> None:
        """Take over what the transaction has found; where nothing is `gated`, only reaches with
        bounds have something to pass."""
        known = self._frontiers
        for reach, frontier in self._found.items():
            known.pop(reach, None)
            if frontier != NOWHERE:
                known[reach] = frontier
        if not gated:
            known.pop(EVERYWHERE, None)
        while len(known) > MOST_FRONTIERS:
            del known[next(iter(known))]
        if woken:
            for reach, frontier in known.items():
                known[reach] = frontier.reopened(woken)
