"""One reading of all metrics: from the store, and from the counters of the server."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest

from zq.engine.subscribers.figures import Histogram
from zq.engine.subscribers.tallies import QueueTallies
from zq.features.budgets.service import Budgets
from zq.features.crons.service import Crons
from zq.features.trends.model import Trend
from zq.features.trends.service import Trends
from zq.http.api.parts import ApiParts
from zq.model.lifecycle import Status
from zq.service.admin import ServerFigures

MOST_QUEUES = 100
"""How many queues have a label of their own. The cost of a scrape must not grow with the queues."""

MOST_BUDGETS = 100
"""The same for budgets."""

REST = "*"
"""The label of all others together. Neither a queue nor a budget can have this name."""


@dataclass(frozen=True)
class Scrape:
    """The numbers of one moment. Times are in milliseconds since the epoch."""

    now: int
    figures: ServerFigures
    jobs: Mapping[tuple[str, Status], int]
    """By queue. `REST` stands for all queues without a label of their own."""
    oldest_ready: Mapping[str, int]
    budgets: int
    waiting: Mapping[str, int]
    """Ready jobs that draw from a budget. `REST` stands for all budgets without a label."""
    times: Mapping[str, Trend]
    """How long jobs waited and ran, by queue. `REST` stands for all queues without a label."""
    tokens: Mapping[str, int]
    """The available tokens of the budgets that have a label."""
    crons: int
    """How many cron entries there are."""
    cron_lag: float
    """How many seconds ago the first cron entry became due."""
    faulty_crons: int
    refused: Mapping[str, int]
    connections: int
    accepted: int
    body_bytes: int
    answer_bytes: int
    lag: Histogram
    tallies: QueueTallies
    dropped_lines: int

    def ages(self) -> Iterator[tuple[str, float]]:
        """How many seconds ago the longest waiting job of each queue became ready."""
        for queue, ready_at in self.oldest_ready.items():
            yield queue, max(self.now - ready_at, 0) / 1000


class _Labels:
    """Names with a label of their own. They keep it as long as they exist."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[str] = []

    def of(self, sizes: Mapping[str, int]) -> list[str]:
        """The names with a label. Free labels go to the largest names without one."""
        self._kept = [name for name in self._kept if name in sizes]
        without = sizes.keys() - set(self._kept)
        free = self._most - len(self._kept)
        self._kept += nlargest(free, without, key=lambda name: (sizes[name], name))
        return self._kept


class Scraper:
    """Takes scrapes. A queue with a label keeps it as long as it has jobs."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._queues = _Labels(MOST_QUEUES)
        self._budgets = _Labels(MOST_BUDGETS)

    async def scrape(self) -> Scrape:
        """Read the store and the counters. Raises `ReadTimeout`."""
        parts, services = self._parts, self._parts.services
        counts = await services.queues.counts()
        queues = self._queues.of(_totals(counts.items()))
        labelled = set(queues)
        jobs: Counter[tuple[str, Status]] = Counter()
        for (queue, status), n in counts.items():
            jobs[queue if queue in labelled else REST, status] += n
        waiting = [queue for queue in queues if counts[queue, Status.READY]]
        oldest = await services.queues.oldest_ready(waiting)
        budgets = await services[Budgets].all()
        named = set(self._budgets.of({budget.key: budget.waiting for budget in budgets}))
        demand: Counter[str] = Counter()
        for budget in budgets:
            demand[budget.key if budget.key in named else REST] += budget.waiting
        return Scrape(
            now=services.clock.now_ms(),
            figures=services.admin.figures(),
            jobs=jobs,
            oldest_ready=oldest,
            budgets=len(budgets),
            waiting=demand,
            times=services[Trends].times(),
            tokens={budget.key: budget.available for budget in budgets if budget.key in named},
            crons=await services[Crons].count(),
            cron_lag=services[Crons].lag() / 1000,
            faulty_crons=services[Crons].faulty.entries,
            refused=parts.refused,
            connections=parts.gate.open,
            accepted=parts.gate.accepted,
            body_bytes=parts.bodies.held,
            answer_bytes=parts.answers.held,
            lag=parts.lag.seconds,
            tallies=services.tallies,
            dropped_lines=parts.dropped_lines(),
        )


def _totals(counts: Iterable[tuple[tuple[str, Status], int]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (queue, _), n in counts:
        if n:
            totals[queue] += n
    return totals
