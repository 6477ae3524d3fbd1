"""Statistics of queues."""

from aiohttp import web
from msgspec import UNSET

from zq.engine.news.figures import NO_FLOW, QueueFlow
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, endpoint
from zq.http.zizq.packing import Packer
from zq.http.zizq.query import parameters
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.model.names import check_name
from zq.service import Services
from zq.service.queues import QueueStatistics
from zq.wire.codecs import BodyCodec
from zq.wire.stats import QUIET, FlowDocument, QueueStatsDocument


class StatsApi:
    """`stats` of all queues and of one."""

    def __init__(self, services: Services, packer: Packer) -> None:
        self._queues = services.queues
        self._packer = packer

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/stats", endpoint(self.all), KeyScope.READ),
            Route("GET", "/queues/{queue}/stats", endpoint(self.one), KeyScope.READ),
        ]

    async def all(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Every queue that has jobs, or had traffic in the last five minutes.

        For each queue: jobs by status, the age of the longest waiting ready job, and deliveries,
        completions and failures since the start, with their rates over one and five minutes.
        """
        parameters(request, ())
        found = await self._queues.statistics(reach_of(request))
        return await self._packer.listed("queues", found, _document, accepted)

    async def one(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One queue, as in `GET /stats`. A queue that does not exist is an empty one."""
        parameters(request, ())
        queue = check_name("queue", request[PATH]["queue"])
        found = await self._queues.statistics_of(queue, reach_of(request))
        return answer(_document(found), accepted)


_NONE = dict.fromkeys(NAMES.values(), 0)


def _document(queue: QueueStatistics) -> QueueStatsDocument:
    age = queue.oldest_ready_age_ms
    return QueueStatsDocument(
        queue.queue,
        _NONE | {NAMES[status]: n for status, n in queue.counts.items()},
        _flow(queue.deliveries),
        _flow(queue.completions),
        _flow(queue.failures),
        UNSET if age is None else age,
    )


def _flow(flow: QueueFlow) -> FlowDocument:
    if flow is NO_FLOW:
        return QUIET
    return FlowDocument(flow.total, round(flow.minute, 3), round(flow.five_minutes, 3))
