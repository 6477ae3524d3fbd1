"""The metrics of how long jobs waited and ran."""

from collections.abc import Mapping
from typing import NamedTuple

from zq.features.trends.engine import MOST_NAMED
from zq.features.trends.model import Trend
from zq.features.trends.service import Trends
from zq.http.api.parts import ApiParts
from zq.http.metrics import REST, Metric, Scrape, TimesByQueue


class TimeFigures(NamedTuple):
    """How long jobs waited and ran, by queue. `REST` stands for all queues without a label."""

    times: Mapping[str, Trend]


class TimesReader:
    """Reads the times of jobs for a scrape."""

    def __init__(self, parts: ApiParts) -> None:
        self._trends = parts.services[Trends]

    async def read(self) -> TimeFigures:
        """The times since the start."""
        return TimeFigures(self._trends.times())


def _waits(scrape: Scrape) -> TimesByQueue:
    times = scrape[TimeFigures].times
    return TimesByQueue([(queue, trend.wait) for queue, trend in times.items()])


def _runs(scrape: Scrape) -> TimesByQueue:
    times = scrape[TimeFigures].times
    return TimesByQueue([(queue, trend.run) for queue, trend in times.items()])


READERS = (TimesReader,)

METRICS = (
    Metric(
        "zq_wait_seconds",
        "histogram",
        "Time from when a job was ready until its delivery, since the start. At most"
        f" {MOST_NAMED} queues by name, the rest together as `{REST}`.",
        _waits,
        ("queue",),
    ),
    Metric(
        "zq_run_seconds",
        "histogram",
        "Time from a delivery until a report or a cancellation ended it, since the start, of the"
        " queues named in `zq_wait_seconds`.",
        _runs,
        ("queue",),
    ),
)
