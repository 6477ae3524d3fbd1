"""Which queues a claim may take from while gates stand somewhere: paused, rate, concurrency.

A gate is a queue's, and is asked when jobs are claimed; opening or shutting it touches no job.
"""

from collections.abc import Collection, Iterable

import msgspec

from zq.model.job import Job
from zq.model.lifecycle import Status
from zq.model.rate import Bucket
from zq.store.frontier import Frontiers
from zq.store.queries import load
from zq.store.work import Work, as_json

QUERIES = load("settings.sql")

_counts = msgspec.json.Decoder(list[tuple[str, int]])


class Gates:
    """What the gates have in memory between transactions: it follows what has been committed."""

    def __init__(self) -> None:
        self.frontiers = Frontiers()
        self._buckets: dict[str, Bucket] = {}

    def sort(
        self, work: Work, queues: Collection[str], now: float
    ) -> tuple[list[str], dict[str, int]]:
        """Of some queues those that are open to claims, and those for so many jobs at most."""
        book = work.rulebook
        if not book.has_gates:
            return list(queues), {}
        free = [q for q in queues if q not in book.paused and q not in book.limited]
        bounds = self.allowances(work, [q for q in queues if q not in book.paused], now)
        return free, {queue: most for queue, most in bounds.items() if most > 0}

    def allowances(self, work: Work, queues: Iterable[str], now: float) -> dict[str, int]:
        """How many jobs may be taken now of those of the queues that have a limit."""
        limited = [queue for queue in queues if queue in work.rulebook.limited]
        if not limited:
            return {}
        held = dict(_counts.decode(_text(work, "read_in_flight", queues=as_json(limited))))
        allowed: dict[str, int] = {}
        for queue in limited:
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

    def note(self, work: Work, jobs: Iterable[Job]) -> None:
        """Remember what was claimed of queues with limits, until it is committed."""
        limited = work.rulebook.limited
        if limited:
            work.spent.update([job.queue for job in jobs if job.queue in limited])

    def learn(self, work: Work, now: float) -> dict[str, float]:
        """Follow a committed transaction. When the queues open again whose rate was asked for."""
        book = work.rulebook
        self.frontiers.learn(work.frontiers, work.woken, gated=book.has_gates)
        if not book.has_gates:
            self._buckets.clear()
            return {}
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
