"""GET /stats/history and /stats/types: what happened over minutes, hours or days.

POST /marks names a moment.
"""

from aiohttp import web
from msgspec import UNSET, UnsetType

from zq.features.trends.service import TrendRange, Trends
from zq.features.trends.service_marks import Marks
from zq.features.trends.service_types import (
    Runs,
    TypeLook,
    TypeRange,
    TypeSort,
    TypeTrends,
    runs_of,
)
from zq.features.trends.wire import (
    PercentilesDocument,
    TrendsDocument,
    decode_mark,
    percentiles_document,
    point_document,
    wait_and_run,
)
from zq.features.trends.wire_types import TypeDocument, TypePointDocument, TypesDocument
from zq.http.api.endpoints import BodyEndpoints, answer, endpoint
from zq.http.api.query import parameters
from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.lifecycle import Status
from zq.model.names import check_name
from zq.service.services import Services
from zq.wire.codecs import BodyCodec
from zq.wire.query import choice


class TrendsApi:
    """`/stats/history`, `/stats/types` and `/marks`."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._trends, self._queues = services[Trends], services.queues
        self._types = services[TypeTrends]
        self._marks, self._endpoints = services[Marks], endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        change = self._endpoints.change
        return [
            Route("GET", "/stats/history", endpoint(self.history), KeyScope.READ, query=True),
            Route("GET", "/stats/types", endpoint(self.types), KeyScope.READ, query=True),
            Route("POST", "/marks", change(self.mark), KeyScope.MANAGE, whole=True),
        ]

    async def mark(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Give this moment a name, such as that of a release that was just deployed: 201.

        `text` has up to 200 characters. Charts show it. The latest 100 marks are kept.
        """
        parameters(request, ())
        return answer(await self._marks.add(decode_mark(body, sent)), accepted, 201)

    async def history(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """What happened in a `queue`, or in all together, over a `range`.

        The range is `5m`, `1h` (unless another one is given), `24h`, `7d` or `90d`. Each of the
        `points` counts jobs by what became of them. `wait` and `run` have percentiles of the time
        until a delivery, and from there to the end, in all and in each point that has any. Of the
        last point's time `open_ms` have passed. `marks` are moments with a name. `drained_ms` says
        when nothing waits any more if jobs come and go as in the last five minutes. It is missing
        if that is never. Minutes are kept for two days, hours for 90 days. Steps of five seconds,
        the points of `5m`, are kept in memory and begin with the server's start. A key that is
        limited to some queues must name one.
        """
        values = parameters(request, ("queue", "range"))
        queue, range = values.get("queue"), choice(values, "range", TrendRange, TrendRange.HOUR)
        if queue is not None:
            check_name("queue", queue)
        series = await self._trends.series(queue, range, reach_of(request))
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
            range=range,
            step_ms=series.step,
            open_ms=series.open_ms,
            points=list(map(point_document, series.points)),
            wait=wait,
            run=run,
            waiting=waiting,
            arrivals_per_second=round(flow.arrivals, 3),
            ends_per_second=round(flow.ends, 3),
            drained_ms=UNSET if drained is None else round(drained),
            marks=await self._marks.since(series.points[0].at),
        )
        return answer(document, accepted)

    async def types(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """How jobs of each type ended, and how long they ran, of a `queue` or of all.

        The `range` is `1h` (unless another one is given), `24h` or `7d`. Its last five minutes,
        hour or day of the clock (UTC) are still open. The `sort` is by `slowest` (the 95 % of the
        runs), `failing` (the share of failed attempts) or `rate`. At most 200 types are shown. With
        `type` it is about that one, and has its `points`. A type has a row for each queue that it
        has jobs in. A thousand of these are told apart, and the others are counted together as type
        `*` in queue `*`. Percentiles of runs are off by a quarter at most. Jobs that were delivered
        before the server's start, or with 100,000 others in flight, are not counted.
        """
        values = parameters(request, ("queue", "range", "sort", "type"))
        queue, type, reach = values.get("queue"), values.get("type"), reach_of(request)
        range = choice(values, "range", TypeRange, TypeRange.HOUR)
        sort = choice(values, "sort", TypeSort, TypeSort.SLOWEST)
        if queue is not None:
            check_name("queue", queue)
        look = await self._types.look(queue, type, range, sort, reach)
        document = TypesDocument(
            range=range,
            queue=UNSET if queue is None else queue,
            known=look.known,
            types=[_type_document(each, look.seconds) for each in look.first],
        )
        if type is not None:
            series = await self._types.series(queue, type, range, reach)
            document.step_ms, document.open_ms = series.step, series.open_ms
            document.points = [
                TypePointDocument(
                    at=at, done=trend.done, failed=trend.failed, run=_run(runs_of(trend))
                )
                for at, trend in series.points
            ]
        return answer(document, accepted)


def _type_document(look: TypeLook, seconds: float) -> TypeDocument:
    return TypeDocument(
        queue=look.queue,
        type=look.type,
        rate=round(look.ended / seconds, 3),
        done=look.trend.done,
        failed=look.trend.failed,
        failed_share=round(look.failed_share, 4),
        run=_run(look.run),
    )


def _run(runs: Runs | None) -> PercentilesDocument | UnsetType:
    return UNSET if runs is None else percentiles_document(runs)
