"""Which queues a claim may take from while gates stand somewhere: paused, rate, concurrency.

A gate is a queue's, and is asked when jobs are claimed; opening or shutting it touches no job.
Where none is shut that matters, claims read the index over all queues. Else they merge the heads of
the open queues that have ready jobs, so that what lies behind shut gates costs nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from zq.model.commands import Claim
from zq.model.job import Job
from zq.model.lifecycle import Status
from zq.model.rate import Bucket
from zq.model.reach import EVERYWHERE
from zq.store.queries import load
from zq.store.work import Work, as_json

QUERIES = load("settings.sql")

_counts = msgspec.json.Decoder(list[tuple[str, int]])


class Way(NamedTuple):
    """The queues that a claim may take from: freely, or so many jobs of each at most."""

    free: list[str]
    bounded: dict[str, int]


class Gates:
    """What the gates have in memory between transactions: it follows what has been committed."""

    def __init__(self) -> None:
        self._ready: dict[str, int] | None = None
        """How many jobs are ready in each queue that has some and is not paused; None: unknown."""
        self._buckets: dict[str, Bucket] = {}

    def way(self, work: Work, wanted: Claim, now: float) -> Way | None:
        """The queues for a claim at the monotonic time `now`; None where all are open to it."""
        book = work.rulebook
        waiting = self._waiting(work)
        if wanted.queues is not None:
            names = [queue for queue in wanted.queues if queue in waiting]
        elif wanted.reach is not EVERYWHERE:
            names = [queue for queue in waiting if wanted.reach.covers(queue)]
        elif book.paused or not waiting.isdisjoint(book.limited):
            names = list(waiting)
        else:
            return None
        limited = [queue for queue in names if queue in book.limited]
        bounded = self._allowances(work, limited, now)
        free = [queue for queue in names if queue not in book.limited]
        return Way(free, {q: min(n, wanted.limit) for q, n in bounded.items() if n > 0})

    def note(self, work: Work, way: Way, jobs: Iterable[Job]) -> None:
        """Remember what was claimed on a way, until it is committed."""
        if way.bounded:
            work.spent.update([job.queue for job in jobs if job.queue in way.bounded])

    def learn(self, work: Work, now: float) -> dict[str, float]:
        """Follow a committed transaction. When the queues open again whose rate was asked for."""
        book = work.rulebook
        if not book.has_gates:
            self._ready = None
            self._buckets.clear()
            return {}
        self._ready = self._counted(work)
        openings: dict[str, float] = {}
        for queue, count in work.spent.items():
            if queue in self._buckets and book.of(queue).rate is not None:
                bucket = self._buckets[queue]
                bucket.spend(count, now)
                if not bucket.tokens(now):
                    openings[queue] = bucket.opens(now)
        if not self._buckets.keys() <= book.limited:
            self._buckets = {q: b for q, b in self._buckets.items() if book.of(q).rate is not None}
        return openings

    def _waiting(self, work: Work) -> set[str]:
        """Queues that are not paused and may have ready jobs, as this transaction has left them."""
        if work.ready is None:
            known = None if work.miscounted else self._ready
            work.ready = self._read_ready(work) if known is None else known
        paused = work.rulebook.paused
        gained = {q for (q, s), n in work.counts.items() if s is Status.READY and n > 0}
        return work.ready.keys() | (gained - paused)

    def _read_ready(self, work: Work) -> dict[str, int]:
        # What this transaction has written to the counts so far is in what is read here.
        work.readied.clear()
        found = _counts.decode(_text(work, "read_ready"))
        return {queue: n for queue, n in found if queue not in work.rulebook.paused}

    def _counted(self, work: Work) -> dict[str, int] | None:
        if work.ready is None and work.miscounted:
            return None
        ready = self._ready if work.ready is None else work.ready
        if ready is None:
            return None
        for queue, n in work.readied.items():
            if queue in work.rulebook.paused:
                continue
            left = ready.get(queue, 0) + n
            if left > 0:
                ready[queue] = left
            else:
                ready.pop(queue, None)
        return ready

    def _allowances(self, work: Work, queues: list[str], now: float) -> dict[str, int]:
        if not queues:
            return {}
        held = dict(_counts.decode(_text(work, "read_in_flight", queues=as_json(queues))))
        allowed: dict[str, int] = {}
        for queue in queues:
            settings = work.rulebook.of(queue)
            bounds: list[int] = []
            if settings.concurrency is not None:
                in_flight = held.get(queue, 0) + work.counts[queue, Status.IN_FLIGHT]
                bounds.append(settings.concurrency - in_flight)
            if settings.rate is not None:
                tokens = self._bucket(queue, settings.rate, now).tokens(now)
                bounds.append(tokens - work.spent[queue])
                # Even where nothing comes of it, it was asked for.
                work.spent[queue] += 0
            allowed[queue] = min(bounds)
        return allowed

    def _bucket(self, queue: str, rate: float, now: float) -> Bucket:
        bucket = self._buckets.get(queue)
        if bucket is None:
            bucket = self._buckets[queue] = Bucket(rate, now)
        elif bucket.rate != rate:
            bucket.change(rate, now)
        return bucket


def _text(work: Work, name: str, **parameters: object) -> str:
    text = work.value(QUERIES[name], parameters)
    assert isinstance(text, str)
    return text
