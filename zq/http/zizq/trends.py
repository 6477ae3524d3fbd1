"""GET /stats/history: what happened over the last minutes, hours or days."""

from aiohttp import web
from msgspec import UNSET

from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.http.zizq.endpoints import answer, endpoint
from zq.http.zizq.query import parameters
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.model.lifecycle import Status
from zq.model.names import check_name
from zq.service import Services
from zq.service.trends import TrendSpan
from zq.wire.codecs import BodyCodec
from zq.wire.trends import TrendsDocument, point_document, wait_and_run


class TrendsApi:
    """`/stats/history`."""

    def __init__(self, services: Services) -> None:
        self._trends, self._queues = services.trends, services.queues

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/stats/history", endpoint(self.history), KeyScope.READ)]

    async def history(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """What happened in a `queue`, or in all together, over a `span`.

        The span is `5m`, `1h` (unless another one is given), `24h`, `7d` or `90d`. Each of the
        `points` counts jobs by what became of them. `wait` and `run` have percentiles of the time
        until a delivery, and from there to the end. `drained_ms` says when nothing waits any more
        if jobs come and go as in the last five minutes. It is missing if that is never. Minutes are
        kept for two days, hours for 90 days. A key that is limited to some queues must name one.
        """
        values = parameters(request, ("queue", "span"))
        queue, text = values.get("queue"), values.get("span", TrendSpan.HOUR)
        if queue is not None:
            check_name("queue", queue)
        if text not in list(TrendSpan):
            raise InvalidRequest(f"`span` must be one of {', '.join(TrendSpan)}")
        series = await self._trends.series(queue, TrendSpan(text), reach_of(request))
        wait, run = wait_and_run(series.sum)
        flow, counts = self._trends.flow(queue), await self._queues.counts()
        waiting = sum(
            n
            for (each, status), n in counts.items()
            if status is Status.READY and queue in (None, each)
        )
        drained = flow.drained_ms(waiting)
        document = TrendsDocument(
            queue=UNSET if queue is None else queue,
            span=text,
            step_ms=series.step,
            points=list(map(point_document, series.points)),
            wait=wait,
            run=run,
            waiting=waiting,
            arrivals_per_second=round(flow.arrivals, 3),
            ends_per_second=round(flow.ends, 3),
            drained_ms=UNSET if drained is None else round(drained),
        )
        return answer(document, accepted)
