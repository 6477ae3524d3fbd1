"""The metrics of the `/v0` dialect, by the names that existing dashboards use."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from aiohttp import hdrs, web
from prometheus_client import Metric as Family
from prometheus_client import generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from zq.doors.topics.http.documents import Stopwatch
from zq.doors.topics.http.streams import EventStreams
from zq.doors.topics.model import TopicState
from zq.doors.topics.service import Routers, Topics, Watches
from zq.engine.subscribers.figures import Histogram
from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.service.services import Services

MOST_SHOWN = 1_000
"""How many topics have labels of their own. The cost of a scrape must not grow with the topics."""

OF_TOPICS = {
    "topics_topic_head_seq": ("head_seq", "The number of a topic's last record."),
    "topics_topic_earliest_seq": ("earliest_seq", "The number of its oldest record."),
    "topics_topic_records_live": ("count", "How many records it has."),
    "topics_topic_bytes_live": ("bytes", "How many bytes they have."),
}
"""The metrics of each topic: the field of `TopicState`, and the help text."""

OF_QUEUES = {
    "topics_topic_queue_ready": ("ready", "How many records of a queue can be claimed."),
    "topics_topic_queue_in_flight": ("in_flight", "How many records of a queue are leased."),
}
"""The metrics that only queues have."""

FSYNC_LATENCY = "topics_wal_fsync_latency_us"


class TopicFigures(NamedTuple):
    """The figures of one moment."""

    gauges: Mapping[str, tuple[int, str]]
    """By name, with what they mean."""
    counters: Mapping[str, tuple[int, str]]
    topics: Sequence[TopicState]
    fsync_seconds: Histogram

    def of_topics(self) -> Iterator[tuple[str, str, dict[str, int]]]:
        """The metrics of topics: the name, what it means, and the value of each topic."""
        queues = [topic for topic in self.topics if topic.config.type == "queue"]
        for table, topics in ((OF_TOPICS, self.topics), (OF_QUEUES, queues)):
            for name, (field, text) in table.items():
                yield name, text, {str(topic.name): getattr(topic, field) for topic in topics}


class TopicMetricsApi:
    """`/metrics`."""

    def __init__(self, services: Services, streams: EventStreams, began: float) -> None:
        self._topics = services[Topics]
        self._routers = services[Routers]
        self._watches = services[Watches]
        self._admin = services.admin
        self._clock = services.clock
        self._streams = streams
        self._began = began

    def routes(self) -> list[Route]:
        return [Route("GET", "/metrics", self.metrics, KeyScope.READ)]

    async def metrics(self, request: web.BaseRequest) -> Answer:
        """Show the figures of topics, as text for Prometheus or as JSON."""
        watch = Stopwatch()
        figures = await self._figures(request)
        if "application/json" in request.headers.get(hdrs.ACCEPT, ""):
            return watch.answer(_document(figures))
        return Answer(
            200,
            generate_latest(_FiguresPage(figures)),
            {"Content-Type": "text/plain; version=0.0.4"},
        )

    async def _figures(self, request: web.BaseRequest) -> TopicFigures:
        topics = await self._topics.count()
        shown = await self._topics.page("", "", MOST_SHOWN, reach_of(request))
        server = self._admin.figures()
        uptime = round((self._clock.monotonic() - self._began) * 1000)
        return TopicFigures(
            {
                "topics_topics": (topics, "How many topics there are."),
                "topics_routers": (await self._routers.count(), "How many routers there are."),
                "topics_sse_connections": (len(self._streams), "Open streams of this door."),
                "topics_watch_sessions": (len(self._watches), "Watch sessions."),
                "topics_queue_leases_in_flight": (
                    sum([topic.in_flight for topic in shown]),
                    "Leased records of the topics that have labels.",
                ),
                "topics_topic_metrics_truncated": (
                    int(topics > MOST_SHOWN),
                    "Whether there are more topics than have labels.",
                ),
                "topics_ready": (1, "Whether the server takes requests."),
                "topics_uptime_ms": (uptime, "How long it has done so."),
            },
            {
                "topics_wal_batches_total": (
                    sum(server.tick_rows.counts),
                    "Transactions of the whole server.",
                ),
                "topics_wal_fsyncs_total": (
                    sum(server.fsync_seconds.counts),
                    "Those that had to be on the disk before anybody heard of them.",
                ),
            },
            shown,
            server.fsync_seconds,
        )


class _FiguresPage(Collector):
    """Figures as a collector of prometheus-client."""

    def __init__(self, figures: TopicFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Family]:
        figures = self._figures
        for name, (value, text) in figures.gauges.items():
            yield GaugeMetricFamily(name, text, value)
        for name, (value, text) in figures.counters.items():
            yield CounterMetricFamily(name, text, value)
        for name, text, values in figures.of_topics():
            family = GaugeMetricFamily(name, text, labels=["topic"])
            for topic, value in values.items():
                family.add_metric([topic], value)
            yield family
        latency = HistogramMetricFamily(FSYNC_LATENCY, "How long a flush takes, in microseconds.")
        latency.add_metric((), _buckets(figures.fsync_seconds), figures.fsync_seconds.sum * 1e6)
        yield latency


def _document(figures: TopicFigures) -> dict[str, object]:
    plain = {
        name: value for name, (value, _) in [*figures.gauges.items(), *figures.counters.items()]
    }
    return {**plain, **{name: values for name, _, values in figures.of_topics()}}


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    bounds = [f"{bound * 1e6:g}" for bound in histogram.bounds]
    return list(zip([*bounds, "+Inf"], accumulate(histogram.counts), strict=True))
