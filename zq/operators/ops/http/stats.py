"""Statistics of queues."""

from aiohttp import web
from msgspec import UNSET

from zq.engine.subscribers.figures import NO_FLOW, QueueFlow
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.lifecycle import NAMES
from zq.model.names import check_name
from zq.operators.page.service import Overviews
from zq.operators.page.service_overview import WatchedQueue
from zq.wire.codecs import BodyCodec
from zq.wire.stats import QUIET, FlowDocument, QueueStatsDocument


class StatsApi:
    """`stats` of all queues and of one."""

    def __init__(self, parts: ApiParts) -> None:
        self._overviews = parts.services[Overviews]
        self._packer = parts.packer

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/stats", endpoint(self.all), KeyScope.READ),
            Route("GET", "/queues/{queue}/stats", endpoint(self.one), KeyScope.READ),
        ]

    async def all(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """Every queue that has jobs, or had traffic in the last five minutes.

        For each queue: jobs by status, the age of the longest waiting ready job, and deliveries,
        completions and failures since the start, with their rates over one and five minutes;
        how many `workers` have a stream open for it, whether it is `paused`, and its `state` (such
        as `no_worker`, `failing` or `growing`), if something is wrong with it.
        """
        parameters(request, ())
        found = await self._overviews.queues(reach_of(request))
        return await self._packer.listed("queues", found, _document, accepted)

    async def one(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """One queue, as in `GET /stats`. A queue that does not exist is an empty one."""
        parameters(request, ())
        queue = check_name("queue", request[PATH]["queue"])
        (found,) = await self._overviews.queues(reach_of(request), queue)
        return answer(_document(found), accepted)


_NONE = dict.fromkeys(NAMES.values(), 0)


def _document(queue: WatchedQueue) -> QueueStatsDocument:
    figures, state = queue.figures, queue.state
    age, settings = figures.oldest_ready_age_ms, queue.settings
    return QueueStatsDocument(
        figures.queue,
        _NONE | {NAMES[status]: n for status, n in figures.counts.items()},
        _flow(figures.deliveries),
        _flow(figures.completions),
        _flow(figures.failures),
        UNSET if age is None else age,
        queue.taken_by.workers,
        UNSET if state is None else state,
        UNSET if state is None or queue.worst is None else queue.worst.text,
        True if settings is not None and settings.paused else UNSET,
    )


def _flow(flow: QueueFlow) -> FlowDocument:
    if flow is NO_FLOW:
        return QUIET
    return FlowDocument(flow.total, round(flow.minute, 3), round(flow.five_minutes, 3))
