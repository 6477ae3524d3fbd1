"""GET /metrics, in Prometheus' text format or, on request, as OpenMetrics."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from aiohttp import web
from prometheus_client import Metric as Family
from prometheus_client import ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from zq.engine.subscribers.figures import Histogram
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.metrics import Metric, Scrape, TimesByQueue
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.operators.ops.http.metrics.scrape import Scraper
from zq.operators.ops.http.metrics.table import every_metric

_POWERS = (*range(3, 12), *range(12, 22, 2))
"""Bounds of times: 8 ms, then twice as much up to 4 s, then four times as much up to 17 minutes."""

_BOUNDS = [*map(floatToGoString, (2**power / 1000 for power in _POWERS)), "+Inf"]


class MetricsApi:
    """The endpoint. A room whose door is shut has no metrics."""

    def __init__(self, parts: ApiParts) -> None:
        doors = ("", *parts.settings.doors)
        self._metrics = [metric for metric in every_metric() if metric.door in doors]
        self._scraper = Scraper(parts)
        self._process = ProcessCollector(registry=None)

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/metrics", self.metrics, KeyScope.READ, whole=True)]

    async def metrics(self, request: web.BaseRequest) -> Answer:
        """All metrics of the server and of its process."""
        encode, content_type = _encoder(request.headers.get("Accept", ""))
        page = _ScrapePage(self._metrics, await self._scraper.scrape(), self._process)
        # Ticks need not wait for the text.
        text = await asyncio.to_thread(encode, page)
        return Answer(200, text, {"Content-Type": content_type})


def _encoder(accept: str) -> tuple[Callable[[Collector], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):
        # It raises for a version that is not a number. Such a client gets plain text.
        return choose_encoder("")


class _ScrapePage(Collector):
    """One scrape as a collector of prometheus-client."""

    def __init__(self, metrics: Sequence[Metric], scrape: Scrape, process: Collector) -> None:
        self._families = [_family(metric, scrape) for metric in metrics]
        self._families += process.collect()

    def collect(self) -> Iterable[Family]:
        return self._families


def _family(metric: Metric, scrape: Scrape) -> Family:
    values = metric.read(scrape)
    if isinstance(values, Histogram):
        family = HistogramMetricFamily(metric.name, metric.help)
        family.add_metric((), _buckets(values), values.sum)
        return family
    if isinstance(values, TimesByQueue):
        family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for queue, times in values.rows:
            # Sums are not kept.
            family.add_metric((queue,), _powers(times), None)
        return family
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return _filled(kind(metric.name, metric.help, labels=metric.labels), values)


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily,
    values: Iterable[tuple[tuple[str, ...], float]],
) -> Family:
    for labels, value in values:
        family.add_metric(labels, value)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [*map(floatToGoString, histogram.bounds), "+Inf"]
    return list(zip(bounds, accumulate(histogram.counts), strict=True))


def _powers(times: Mapping[int, int]) -> list[tuple[str, float]]:
    """The buckets of times that are counted by their powers of two, in milliseconds."""
    counts = [0] * len(_BOUNDS)
    for power, n in times.items():
        counts[bisect_left(_POWERS, power)] += n
    return list(zip(_BOUNDS, accumulate(counts), strict=True))
