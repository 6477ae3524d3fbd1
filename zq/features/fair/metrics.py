"""The metrics of fair keys: those that wait longest."""

from typing import NamedTuple

from zq.features.fair.store import FairReads, KeyOfQueue
from zq.http.api.parts import ApiParts
from zq.http.metrics import Metric, Scrape, Values

MOST_KEYS = 20
"""How many keys a scrape names. Its cost must not grow with them."""


class FairFigures(NamedTuple):
    """The keys whose first job waits for the longest time."""

    keys: list[KeyOfQueue]


class FairReader:
    """Reads them. A key is named only while it is among the worst."""

    def __init__(self, parts: ApiParts) -> None:
        self._reads = parts.services.store.reads.of(FairReads)

    async def read(self) -> FairFigures:
        """The worst keys of this moment. Raises `ReadTimeout`."""
        return FairFigures(await self._reads.longest_waiting(MOST_KEYS))


def _waits(scrape: Scrape) -> Values:
    for each in scrape[FairFigures].keys:
        yield (each.queue, each.key), max(scrape.now - each.oldest_ready, 0) / 1000


def _waiting(scrape: Scrape) -> Values:
    return [((each.queue, each.key), each.waiting) for each in scrape[FairFigures].keys]


READERS = (FairReader,)

METRICS = (
    Metric(
        "zq_fair_key_wait_seconds",
        "gauge",
        f"For how long the first job of a fair key waits: the {MOST_KEYS} keys of all queues with"
        " the longest wait.",
        _waits,
        ("queue", "key"),
    ),
    Metric(
        "zq_fair_key_waiting_jobs",
        "gauge",
        "Ready jobs of the keys that are named in `zq_fair_key_wait_seconds`.",
        _waiting,
        ("queue", "key"),
    ),
)
