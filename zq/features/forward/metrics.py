"""The metrics of lanes."""

from collections.abc import Callable
from typing import NamedTuple

from zq.features.forward.service import Lanes, LaneStatus
from zq.http.api.parts import ApiParts
from zq.http.metrics import Metric, Scrape, Values

MOST_NAMED = 20
"""How many lanes a scrape names: those whose oldest jobs have waited for longest."""


class LaneFigures(NamedTuple):
    """The lanes at one scrape, with what waits on them."""

    lanes: list[LaneStatus]


class LaneReader:
    """Reads the lanes for a scrape."""

    def __init__(self, parts: ApiParts) -> None:
        self._lanes = parts.services[Lanes]

    async def read(self) -> LaneFigures:
        """The lanes of this moment. Raises `ReadTimeout`."""
        found = await self._lanes.status()
        found.sort(key=lambda each: (each.oldest_at is None, each.oldest_at))
        return LaneFigures(found[:MOST_NAMED])


def _of(figure: Callable[[LaneStatus], float | None]) -> Callable[[Scrape], Values]:
    def values(scrape: Scrape) -> Values:
        for each in scrape[LaneFigures].lanes:
            value = figure(each)
            if value is not None:
                yield (each.lane.name,), value

    return values


def _lags(scrape: Scrape) -> Values:
    for each in scrape[LaneFigures].lanes:
        yield (each.lane.name,), (each.lag_ms(scrape.now) or 0) / 1000


def _failed(status: LaneStatus) -> float | None:
    at = status.progress.failed_at
    return None if at is None else at / 1000


def _succeeded(status: LaneStatus) -> float | None:
    at = status.progress.succeeded_at
    return None if at is None else at / 1000


READERS = (LaneReader,)

METRICS = (
    Metric(
        "zq_lane_waiting_jobs",
        "gauge",
        f"Jobs that have not arrived at the hub, of the {MOST_NAMED} lanes furthest behind.",
        _of(lambda each: each.waiting),
        ("lane",),
    ),
    Metric(
        "zq_lane_waiting_bytes",
        "gauge",
        "Bytes of the payloads of these jobs, as they were counted last.",
        _of(lambda each: each.bytes),
        ("lane",),
    ),
    Metric(
        "zq_lane_lag_seconds",
        "gauge",
        "The age of the oldest of these jobs.",
        _lags,
        ("lane",),
    ),
    Metric(
        "zq_lane_arrived_jobs_total",
        "counter",
        "Jobs that have arrived at the hub.",
        _of(lambda each: each.progress.arrived),
        ("lane",),
    ),
    Metric(
        "zq_lane_refused_jobs_total",
        "counter",
        "Jobs that the hub has refused, and that are dead here.",
        _of(lambda each: each.progress.refused),
        ("lane",),
    ),
    Metric(
        "zq_lane_dropped_jobs_total",
        "counter",
        "Jobs that were dropped since the lane was full.",
        _of(lambda each: each.progress.dropped),
        ("lane",),
    ),
    Metric(
        "zq_lane_sent_bytes_total",
        "counter",
        "Bytes of the bodies that were sent, as they go over the wire.",
        _of(lambda each: each.progress.sent_bytes),
        ("lane",),
    ),
    Metric(
        "zq_lane_last_success_seconds",
        "gauge",
        "When jobs of the lane have arrived last, in seconds since 1970.",
        _of(_succeeded),
        ("lane",),
    ),
    Metric(
        "zq_lane_failing",
        "gauge",
        "1 while the lane waits after an error, else 0. `/health` has the reason.",
        _of(lambda each: each.progress.error is not None),
        ("lane",),
    ),
    Metric(
        "zq_lane_last_failure_seconds",
        "gauge",
        "When the lane has failed last, in seconds since 1970.",
        _of(_failed),
        ("lane",),
    ),
)
