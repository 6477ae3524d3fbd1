"""The endpoints for operators: `POST /reset`, GET /status and GET /metrics."""

import asyncio
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from aiohttp import web
from msgspec import UNSET, UnsetType
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

from zq import __version__
from zq.engine.subscribers.figures import Histogram, RecentTimes
from zq.http.api.endpoints import answer, endpoint, parameters
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import KEY
from zq.http.metrics import Metric, Scrape, TimesByQueue
from zq.http.transport.addresses import is_loopback
from zq.http.transport.answer import Answer
from zq.model.errors import Forbidden, InvalidRequest
from zq.model.keys import KeyScope
from zq.operators.ops.http_metrics import Scraper, every_metric
from zq.operators.ops.http_quick import API_VERSION, COMMIT_MODES
from zq.operators.ops.service import StatusNow, StatusReader
from zq.operators.ops.verbs import (
    DiskDocument,
    InboxDocument,
    RecentTimesDocument,
    StatusDocument,
    WriteAheadLogDocument,
)
from zq.service.admin import ServerHealth
from zq.wire.codecs import BodyCodec


class StatusApi:
    """`/status`."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._admin, self._status = services.admin, services[StatusReader]

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/status", endpoint(self.status), KeyScope.READ, whole=True)]

    async def status(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The state of the server: recent ticks and flushes, waiting commands, the log, the disk.

        `limits_reached` names the reached limits: `storage_full`, `wal_full`, `inbox_full`,
        `server_limit` (jobs in flight), `database_locked` (by another program), `database_away`
        (its connection is lost). `flags` has the settings that are not at their defaults.
        """
        parameters(request, ())
        document = status_document(self._status.read(), self._admin.health())
        return answer(document, accepted)


def status_document(now: StatusNow, health: ServerHealth) -> StatusDocument:
    """The state of the server as a document."""
    settings = now.settings
    document = StatusDocument(
        version=API_VERSION,
        zq=__version__,
        since=now.since,
        commit_mode=COMMIT_MODES[health.durability.changes],
        enqueue_commit_mode=COMMIT_MODES[health.durability.enqueues],
        flushed_by=health.flushed_by,
        ticks=_times(now.ticks),
        flushes=_times(now.flushes),
        inbox=InboxDocument(now.inbox_jobs, settings.max_inbox_jobs, now.inbox_changes),
        streams=now.streams,
        claims=now.claims,
        log=WriteAheadLogDocument(now.log_bytes, settings.max_wal, now.uncopied_bytes),
        disk=DiskDocument(
            now.database_bytes,
            settings.disk_reserve,
            UNSET if now.free_bytes is None else now.free_bytes,
        ),
        limits_reached=now.reached,
        flags=dict(now.flags),
    )
    if settings.global_in_flight_limit:
        document.in_flight_limit = settings.global_in_flight_limit
    return document


def _times(recent: RecentTimes) -> RecentTimesDocument:
    return RecentTimesDocument(recent.observed, _ms(recent.median), _ms(recent.p99))


def _ms(seconds: float | None) -> float | UnsetType:
    return UNSET if seconds is None else round(seconds * 1000, 3)


_FIELD = re.compile(rb'\s*(\{\s*"|\w+=|[\x81-\x8f\xde\xdf])')
"""The beginning of a body that has a field, in JSON, as a form or in MessagePack."""


class ResetApi:
    """The endpoint that deletes everything."""

    def __init__(self, parts: ApiParts) -> None:
        self._admin = parts.services.admin

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("POST", "/reset", self.reset, KeyScope.MANAGE, whole=True)]

    async def reset(self, request: web.BaseRequest) -> Answer:
        """Delete everything, settings too. Without keys, only this machine may do it.

        A query, or a body that has a field, is refused with 400: a filter would be lost.
        """
        parameters(request, ())
        if request.can_read_body and _FIELD.match(await request.read()):
            raise InvalidRequest(
                "a reset deletes everything, and reads no filter: leave the body out, or delete"
                " some jobs by DELETE /jobs?queue=…"
            )
        if request.get(KEY) is None and not is_loopback(request.remote):
            raise Forbidden("reset is only for clients on this machine, or with a key")
        await self._admin.clear()
        return Answer(204)


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


APIS = (ResetApi, StatusApi, MetricsApi)
