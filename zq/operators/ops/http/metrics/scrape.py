"""One reading of all metrics: from the store, and from the counters of the server."""

import asyncio
from collections import Counter
from collections.abc import Iterable

from zq import rooms
from zq.http.api.parts import ApiParts
from zq.http.metrics import REST, FigureReader, LabelledNames, Scrape
from zq.model.lifecycle import Status

MOST_QUEUES = 100
"""How many queues have a label of their own. The cost of a scrape must not grow with the queues."""


class Scraper:
    """Takes scrapes. A queue with a label keeps it as long as it has jobs."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._queues = LabelledNames(MOST_QUEUES)
        kinds = (kind for some in rooms.parts("metrics", "READERS", tuple) for kind in some)
        self._readers: list[FigureReader] = [kind(parts) for kind in kinds]

    async def scrape(self) -> Scrape:
        """Read the store and the counters. Raises `ReadTimeout`."""
        parts, services = self._parts, self._parts.services
        # A busy event loop delays each of these reads, so they are made beside each other.
        counts, found = await asyncio.gather(
            services.queues.counts(), asyncio.gather(*(reader.read() for reader in self._readers))
        )
        queues = self._queues.of(_totals(counts.items()))
        labelled = set(queues)
        jobs: Counter[tuple[str, Status]] = Counter()
        for (queue, status), n in counts.items():
            jobs[queue if queue in labelled else REST, status] += n
        waiting = [queue for queue in queues if counts[queue, Status.READY]]
        oldest = await services.queues.oldest_ready(waiting)
        return Scrape(
            now=services.clock.now_ms(),
            figures=services.admin.figures(),
            jobs=jobs,
            oldest_ready=oldest,
            refused=parts.refused,
            connections=parts.gate.open,
            accepted=parts.gate.accepted,
            body_bytes=parts.bodies.held,
            answer_bytes=parts.answers.held,
            lag=parts.lag.seconds,
            tallies=services.tallies,
            dropped_lines=parts.dropped_lines(),
            of_rooms={type(each): each for each in found},
        )


def _totals(counts: Iterable[tuple[tuple[str, Status], int]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (queue, _), n in counts:
        if n:
            totals[queue] += n
    return totals
