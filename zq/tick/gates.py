"""The queues that a claim may take from while there are gates: paused, rate, concurrency.

A gate belongs to a queue and is asked when jobs are claimed. Opening or shutting it changes no job.
What is left of a rate is stored with the deliveries that it has let through, so that it survives a
restart.

Claims remember a place in the index before which they may take nothing: there their walks begin. As
a rule, the backlog of a paused queue is older than the jobs of other queues, and lies before them
in the index. After a walk has passed it once, later walks begin behind it. If a job becomes ready
before that place, its transaction names its queue as woken, so only woken queues are asked.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple, Self

from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.reach import EVERYWHERE, Reach
from zq.tick.rulebook import Rulebook
from zq.tick.work import UnitOfWork

LEAST_WAIT_S = 0.010
"""A fast bucket opens for several tokens at once, so that not every token costs a tick."""

_ROUNDING = 1e-6


class Bucket:
    """Fills with `rate` tokens a second, up to a second's worth and at least one; begins full.

    All times are monotonic seconds.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._most = max(rate, 1.0)
        self._level = self._most
        self._at = now

    def resume(self, level: float, seconds: float) -> None:
        """Go on with the tokens that were left some seconds ago."""
        self._level = min(level + seconds * self.rate, self._most)

    def left_after(self, count: int, now: float) -> float:
        """The tokens that are left when this many are taken out."""
        return self._level_at(now) - count

    def tokens(self, now: float) -> int:
        """How many tokens there are."""
        return math.floor(self._level_at(now) + _ROUNDING)

    def spend(self, count: int, now: float) -> None:
        """Take tokens out."""
        self._level, self._at = self.left_after(count, now), now

    def change(self, rate: float, now: float) -> None:
        """Fill at another rate from now on. The tokens stay."""
        level = self._level_at(now)
        self.rate, self._most = rate, max(rate, 1.0)
        self._level, self._at = min(level, self._most), now

    def opens(self, now: float) -> float:
        """When there will be a token again."""
        missing = max(1.0 - self._level_at(now), 0.0)
        return now + max(missing / self.rate, LEAST_WAIT_S)

    def _level_at(self, now: float) -> float:
        return min(self._level + (now - self._at) * self.rate, self._most)


Place = tuple[int, int]
"""The place of a job in dispatch order: its priority and its key."""

START: Place = (-1, -1)

MOST_REOPENED = 10_000
"""The most queues that are asked one by one. With more, claims begin at the start again."""

MOST_FRONTIERS = 64
"""How many reaches are remembered. Keys are many, but few have workers that wait."""


LATE_MS = 1_000
"""A rate is left at most so much later than a transaction that goes on with it began: a clock that
goes back by more holds nobody up for longer."""


class Frontier(NamedTuple):
    """The knowledge about one reach: up to `place`, only the named queues have jobs to take."""

    place: Place = START
    woken: frozenset[str] = frozenset()
    """Queues in which a job may have become ready since then."""
    held_back: frozenset[str] = frozenset()
    """Queues with a rate or a concurrency limit that were at their limit."""
    few: bool = False
    """True if so few queues have ready jobs that asking each costs less than a walk."""

    def reopened(self, queues: set[str]) -> Self:
        """The gates to ask once jobs may have become ready in some queues."""
        if self.place == START:
            return self
        woken = self.woken | queues
        return self._replace(woken=woken) if len(woken) <= MOST_REOPENED else type(self)()


NOWHERE = Frontier()


class Gates:
    """The gates' memory between transactions. It follows committed transactions."""

    def __init__(self) -> None:
        self._frontiers: dict[Reach, Frontier] = {}
        self._buckets: dict[str, Bucket] = {}
        self._found: dict[Reach, Frontier] = {}
        self._taken: Counter[str] = Counter()
        """Jobs that the current transaction has taken from queues with limits."""
        self._asked: set[str] = set()
        """The queues whose rate it has asked for, even if it took nothing."""
        self.in_use = False
        """True if a transaction has anything to teach. As a rule no gate was asked."""

    def forget(self) -> None:
        """Forget the notes of a transaction that has ended."""
        self._found.clear()
        self._taken.clear()
        self._asked.clear()

    def forget_places(self) -> None:
        """Let claims begin at the start: jobs may come before a place without being named here."""
        self._frontiers.clear()
        self.in_use = bool(self._buckets)

    def frontier(self, reach: Reach) -> Frontier:
        """The place at which claims within a reach begin."""
        return self._found.get(reach) or self._frontiers.get(reach, NOWHERE)

    def begin_at(self, reach: Reach, frontier: Frontier) -> None:
        """Let claims begin there from now on, if the transaction is committed."""
        self._found[reach] = frontier
        self.in_use = True

    def sort(
        self, work: UnitOfWork, queues: Collection[str], now: float, *, leaves: bool = False
    ) -> tuple[list[str], dict[str, int]]:
        """The queues, among some, that are open to claims, and those that are open for a number of
        jobs. `leaves` is as for `Rulebook.shut`."""
        book = work.rulebook
        if not book.has_gates:
            return list(queues), {}
        shut = book.shut(queues, leaves=leaves)
        if leaves:
            # Limits of queues are for workers.
            return [queue for queue in queues if queue not in shut], {}
        free = [q for q in queues if q not in shut and q not in book.limited]
        bounds = self.allowances(work, [q for q in queues if q not in shut], now)
        return free, {queue: most for queue, most in bounds.items() if most > 0}

    def allowances(self, work: UnitOfWork, queues: Iterable[str], now: float) -> dict[str, int]:
        """How many jobs may be taken now from those of the queues that have a limit."""
        limited = [queue for queue in queues if queue in work.rulebook.limited]
        if not limited:
            return {}
        self.in_use = True
        held = dict(work.tx.table("read_in_flight", queues=limited))
        self._resume(work, limited, now)
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
        """Remember the jobs claimed from queues with limits until they are committed."""
        if limited := work.rulebook.limited:
            self._taken.update([job.queue for job in jobs if job.queue in limited])

    def store(self, work: UnitOfWork, now: float) -> None:
        """Store what the current transaction leaves of the rates of queues."""
        rates = [
            (queue, self._buckets[queue].left_after(count, now), work.steady)
            for queue, count in self._taken.items()
            if queue in self._buckets and work.rulebook.of(queue).rate is not None
        ]
        if rates:
            work.tx.write("write_rates", rates=rates)

    def learn(self, work: UnitOfWork, now: float) -> dict[str, float]:
        """Follow a committed transaction. Return when queues open whose rate was asked for."""
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
        """Spend the rates of taken jobs. Return when the queues open again that have none left."""
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

    def _resume(self, work: UnitOfWork, queues: Iterable[str], now: float) -> None:
        """Begin buckets with what the store says was left of them.

        Another server may have left it a moment later than this transaction began. A bucket had
        less at that moment, so waiting for a turn, and clocks that are apart, add no tokens.
        """
        rates = {queue: work.rulebook.of(queue).rate for queue in queues}
        new = [q for q, rate in rates.items() if rate is not None and q not in self._buckets]
        if not new:
            return
        for queue, level, at in work.tx.table("read_rates", queues=new):
            self._bucket(queue, rates[queue] or 0.0, now).resume(
                level, max(work.steady - at, -LATE_MS) / 1000
            )

    def _bucket(self, queue: str, rate: float, now: float) -> Bucket:
        bucket = self._buckets.get(queue)
        if bucket is None:
            bucket = self._buckets[queue] = Bucket(rate, now)
        elif bucket.rate != rate:
            bucket.change(rate, now)
        return bucket

    def _learn_frontiers(self, woken: set[str], *, gated: bool) -> None:
        """Adopt the places that the transaction has found. If nothing is `gated`, only bounded
        reaches have something to pass."""
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
