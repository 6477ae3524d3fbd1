"""GET /ui/live: what a page shows, as it changes, by server-sent events. GET /ui/look: once."""

from aiohttp import web

from zq.http.api.endpoints import parameters
from zq.http.door import Route
from zq.http.guard import Guard, reach_of
from zq.http.transport.answer import Answer, Response
from zq.http.transport.channel import Channel, channel_of, watch_for_end
from zq.http.transport.heartbeats import Heartbeats, HeartbeatTimer
from zq.model.errors import InvalidRequest, ServiceUnavailable
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.operators.page.http.frames import ViewFrame
from zq.operators.page.http.live_views import LiveViews, ViewReader
from zq.operators.page.http.mask import Mask
from zq.operators.page.http.page import SAFE
from zq.operators.page.http.views import MOST_ROWS, SORTS, View, Views
from zq.operators.page.service import Overviews
from zq.service.services import Services
from zq.wire.codecs import JSON
from zq.wire.query import limit_in, whole_number

HEARTBEAT_S = 2.0
"""A page says that it is stale after five seconds without a word."""

STALL_S = 30.0
SAFE_METHODS = ("GET", "HEAD")
PARAMETERS = ("topic", "q", "sort", "from", "limit", "queue", "tree", "under", "worker")

NEVER_STORED = {**SAFE, "Cache-Control": "no-store"}

HEADERS = {
    **NEVER_STORED,
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",
}


class LiveApi:
    """The live views of the page, as a stream of events."""

    def __init__(self, services: Services, guard: Guard, mask: Mask | None) -> None:
        self._guard = guard
        views = Views(services, mask)
        self._topics = views.topics.keys()
        self._live = LiveViews(views, services[Overviews], services.clock)
        services.engine.when_let_go.append(self._live.close)
        self._heartbeats = HeartbeatTimer(
            services.clock, heartbeat=HEARTBEAT_S, stall_timeout=STALL_S
        )

    def expect(self) -> None:
        """Prepare the views: somebody loads the page, and will look at them soon."""
        self._live.expect()

    def acting(self, route: Route) -> Route:
        """A route after which every view is looked at anew, if it may change something."""
        if route.method in SAFE_METHODS:
            return route
        handle = route.handler

        async def handler(request: web.BaseRequest) -> Response:
            try:
                return await handle(request)
            finally:
                self._live.refresh()

        handler.__doc__ = handle.__doc__
        return route._replace(handler=handler)

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/live", self.live, KeyScope.READ),
            Route("GET", "/look", self.snapshot, KeyScope.READ),
        ]

    async def live(self, request: web.BaseRequest) -> web.StreamResponse:
        """Stream one topic: a snapshot, then once a second what has changed.

        In between, a comment says how old what was last seen is: `: 0 ms old` as long as there has
        been no tick since the server has looked. A page that is told nothing new is as old as that.
        A reader that is slow skips frames, and gets a snapshot after that.
        """
        with self._live.reader(self._view(request)) as reader:
            await _first(reader)
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            channel = channel_of(request)
            if channel.transport is None or request.method == "HEAD":
                return response
            beats = self._heartbeats.begin(channel, reader.nudge, {"stream": "page"})
            try:
                with watch_for_end(channel), self._guard.while_granted(request, reader.end):
                    await _show(reader, response, channel, beats, self._live)
            finally:
                beats.stop()
            return response

    async def snapshot(self, request: web.BaseRequest) -> Answer:
        """The whole document of one topic, for a page that gets no events.

        It is not counted among the streams, so it is there also when these are used up.
        """
        with self._live.reader(self._view(request), stays=False) as reader:
            frame = await _first(reader)
        if frame is None:
            raise ServiceUnavailable("the server stops: ask again when it is back")
        return Answer(
            200, frame.document_alone, {**NEVER_STORED, "Content-Type": JSON.content_type}
        )

    def _view(self, request: web.BaseRequest) -> View:
        values = parameters(request, PARAMETERS)
        topic, sort = values.get("topic", "pulse"), values.get("sort", "worst")
        if topic not in self._topics:
            raise InvalidRequest(f"`topic` must be one of {', '.join(self._topics)}")
        if sort not in SORTS:
            raise InvalidRequest(f"`sort` must be one of {', '.join(SORTS)}")
        reach, queue = reach_of(request), values.get("queue", "")
        if topic == "queue":
            reach.require([check_name("queue", queue)])
        first = whole_number("from", values.get("from", "0"), 1_000_000)
        limit = limit_in(values, 50, MOST_ROWS)
        tree, under = values.get("tree", "") == "1", values.get("under", "")
        return View(
            *(topic, reach, values.get("q", ""), sort, first, limit, queue, tree, under),
            values.get("worker", ""),
        )


async def _first(reader: ViewReader) -> ViewFrame | None:
    """The frame that a view begins with; None if the server stops. Raises why there is none."""
    while reader.shared.frame is None and reader.shared.refusal is None and not reader.ended:
        await reader.wait()
    if reader.shared.refusal is not None:
        raise reader.shared.refusal
    return reader.shared.frame


async def _show(
    reader: ViewReader,
    response: web.StreamResponse,
    channel: Channel,
    beats: Heartbeats,
    live: LiveViews,
) -> None:
    shown: ViewFrame | None = None
    while not reader.ended:
        frame = reader.shared.frame
        # While the peer has not read the frame before, later ones replace each other.
        if frame is not None and frame is not shown and not channel.unsent():
            is_next = shown is not None and frame.number == shown.number + 1
            shown = frame
            beats.written()
            await response.write(frame.change if is_next else frame.whole)
        elif beats.is_due:
            beats.written()
            await response.write(b": %d ms old\n\n" % live.age_ms())
        await reader.wait()
