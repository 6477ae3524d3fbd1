"""One look at all that is measured: what the store holds, and what the server has counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest

from zq.engine.engine import Engine
from zq.engine.lag import LagMeter
from zq.http.answers import Answers
from zq.http.bodies import Bodies
from zq.http.gate import Gate
from zq.model.lifecycle import Status

MOST_QUEUES = 100
"""Queues that have a label of their own: what a scrape costs must not grow with their number."""

REST = "*"
"""Label of all other queues together; no queue can have this name."""


@dataclass(frozen=True)
class Sources:
    """The parts of the server that count."""

    engine: Engine
    bodies: Bodies
    answers: Answers
    gate: Gate
    lag: LagMeter
    dropped_lines: Callable[[], int]
    """How many lines of the log nobody has taken."""


@dataclass(frozen=True)
class Scrape:
    """The numbers of one moment. Times in milliseconds since the epoch."""

    sources: Sources
    jobs: Mapping[tuple[str, Status], int]
    """By queue, where `REST` stands for all that have no label of their own."""
    oldest_ready: Mapping[str, int]
    now: int

    def ages(self) -> Iterator[tuple[str, float]]:
        """Seconds since the longest waiting job of each queue became ready."""
        for queue, ready_at in self.oldest_ready.items():
            yield queue, max(self.now - ready_at, 0) / 1000


class Scraper:
    """Takes the looks. A queue that has a label keeps it for as long as it has jobs."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._labelled: list[str] = []

    async def scrape(self) -> Scrape:
        """Read the store and look around. Raises `ReadTimeout`."""
        engine = self.sources.engine
        counts = await engine.counts()
        self._label(counts)
        labelled = set(self._labelled)
        jobs: Counter[tuple[str, Status]] = Counter()
        for (queue, status), n in counts.items():
            jobs[queue if queue in labelled else REST, status] += n
        waiting = [queue for queue in self._labelled if counts[queue, Status.READY]]
        oldest = await engine.queue_stats.oldest_ready(waiting)
        return Scrape(self.sources, jobs, oldest, engine.clock.now_ms())

    def _label(self, counts: Mapping[tuple[str, Status], int]) -> None:
        """Labels go on to the largest of those that have none, as others run empty."""
        totals = _totals(counts.items())
        self._labelled = [queue for queue in self._labelled if queue in totals]
        without = totals.keys() - set(self._labelled)
        free = MOST_QUEUES - len(self._labelled)
        self._labelled += nlargest(free, without, key=lambda queue: (totals[queue], queue))


def _totals(counts: Iterable[tuple[tuple[str, Status], int]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (queue, _), n in counts:
        if n:
            totals[queue] += n
    return totals
