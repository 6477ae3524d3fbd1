"""GET /ui/live: what a page shows, as it changes, by server-sent events. GET /ui/look: once.

At most once a second, all views that somebody looks at are made from one look, and none without
readers. An expensive look is taken seldom. A frame is encoded once for all its readers.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from aiohttp import web

from zq.engine.subscribers.waking import NewsReader, log_failure
from zq.http.api.endpoints import parameters
from zq.http.door import Route
from zq.http.guard import Guard, reach_of
from zq.http.transport.answer import Answer, Response
from zq.http.transport.channel import Channel, channel_of, watch_for_end
from zq.http.transport.heartbeats import Heartbeats, HeartbeatTimer
from zq.model.clock import Clock, Timer
from zq.model.errors import InvalidRequest, ServiceUnavailable, TooManyStreams, ZqError
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.operators.page.http.mask import Mask
from zq.operators.page.http.page import SAFE
from zq.operators.page.http.views import MOST_ROWS, SORTS, View, ViewFrame, Views
from zq.operators.page.service import Overviews
from zq.operators.page.service_overview import Overview
from zq.service.services import Services
from zq.wire.codecs import JSON
from zq.wire.query import limit_in, whole_number

BEAT_S = 1.0
READING_SHARE = 50
"""Reading for views may use at most 1/50 of the time."""

REST_S = 5.0
"""The time between two readings without a tick, in seconds: rates and ages change all the same."""

FRESH_S = 3.0
"""A view that is new begins with a look that is not older."""

KEPT_S = 900
"""The time in seconds for which the last overview is remembered after the last view is closed: the
next page is soon complete, since only queues that have changed are read. Until then, ticks note
which have."""

AT_A_GLANCE = "overview"
"""The topic whose figures are shown before a look is over."""

MOST_VIEWS = 32
MOST_READERS = 200


class ViewReader(NewsReader):
    """One open page that shows a view."""

    def __init__(self, shared: "SharedView") -> None:
        super().__init__()
        self.shared = shared


class SharedView:
    """One view, its readers and its current frame."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.readers: set[ViewReader] = set()
        self.frame: ViewFrame | None = None
        self.refusal: ZqError | None = None
        """Why the view could not be made the last time."""

    @property
    def is_new(self) -> bool:
        """True until it is made for the first time."""
        return self.frame is None and self.refusal is None

    async def begin(self, views: Views, glance: Overview) -> None:
        """Make the first frame of what is known before a look is over, if there is none yet."""
        document = await views.document(self.view, glance)
        if self.is_new:
            self.frame = ViewFrame(0, glance.at, document, None)
            self._tell()

    async def make(self, views: Views, overview: Overview) -> None:
        """Make the next frame, if the document has changed."""
        before = self.frame
        try:
            document = await views.document(self.view, overview)
        except ZqError as error:
            self.refusal = error
        else:
            self.refusal = None
            if before is None:
                self.frame = ViewFrame(0, overview.at, document, None)
            elif document != before.document:
                number = before.number + 1
                self.frame = ViewFrame(number, overview.at, document, before.document)
            else:
                return
        self._tell()

    def _tell(self) -> None:
        for reader in self.readers:
            reader.nudge()


class LiveViews:
    """All views with readers."""

    def __init__(self, views: Views, overviews: Overviews, clock: Clock) -> None:
        self._views = views
        self._overviews = overviews
        self._clock = clock
        self._shared: dict[View, SharedView] = {}
        self._timer: Timer | None = None
        self._making: asyncio.Task[None] | None = None
        self._glancing: asyncio.Task[None] | None = None
        self._overview: Overview | None = None
        """The last look, while it is fresh."""
        self._made_at = float("-inf")
        self._took = (0.0, 0.0)
        """How long the last two looks took. The first of many looks is longer than the others."""
        self._ticks = -1
        self._seen_at = clock.now_ms()
        self._awaited = False
        self._closed = False

    def refresh(self) -> None:
        """Look soon, however lately it has looked: somebody waits to see what they have done."""
        self._awaited = True
        self._overview = None
        if self._shared and not self._closed:
            self._beat(now=True)

    def expect(self) -> None:
        """Look, if it is time for that: somebody loads the page, and soon wants its first frame."""
        if not self._shared and self._age() >= REST_S:
            self._arm()
            self._start()

    def age_ms(self) -> int:
        """How old the current frames are: 0 if there was no tick since they were looked at."""
        if self._overviews.ticks() == self._ticks:
            return 0
        return max(self._clock.now_ms() - self._seen_at, 0)

    @contextmanager
    def reader(self, view: View, *, stays: bool = True) -> Iterator[ViewReader]:
        """A reader of a view within the context. Raises `TooManyStreams` for one that `stays`."""
        shared = self._shared.get(view)
        if stays:
            self._require_room(shared)
        if shared is None:
            shared = self._shared[view] = SharedView(view)
        reader = ViewReader(shared)
        shared.readers.add(reader)
        if self._closed:
            reader.end()
        elif shared.frame is None:
            self._beat(now=True)
            if stays and view.topic == AT_A_GLANCE:
                self._glancing = asyncio.create_task(self._glance(shared))
                self._glancing.add_done_callback(partial(log_failure, "what a page shows first"))
        elif self._timer is None:
            self._arm()
        try:
            yield reader
        finally:
            shared.readers.discard(reader)
            if not shared.readers and self._shared.get(view) is shared:
                del self._shared[view]

    def _require_room(self, shared: SharedView | None) -> None:
        if shared is None and len(self._shared) >= MOST_VIEWS:
            raise TooManyStreams(f"{MOST_VIEWS} different views are open: close one")
        if sum(len(each.readers) for each in self._shared.values()) >= MOST_READERS:
            raise TooManyStreams(f"{MOST_READERS} live streams are open: close one")

    def close(self) -> None:
        """End all readers."""
        self._closed = True
        self._disarm()
        for shared in self._shared.values():
            for reader in shared.readers:
                reader.end()

    def _arm(self, after: float = BEAT_S) -> None:
        self._disarm()
        self._timer = self._clock.call_later(after, self._beat)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _beat(self, *, now: bool = False) -> None:
        """Look, if it is time for that and somebody cares."""
        self._disarm()
        if not self._shared:
            self._forget()
            return
        self._arm()
        if now or self._is_time():
            self._start(anew=not now)

    def _forget(self) -> None:
        """Nobody looks: forget the last look when it is not fresh, and what was seen much later."""
        age = self._age()
        if age < FRESH_S or self._making is not None:
            self._arm()
            return
        self._overview = None
        if age < KEPT_S:
            self._arm(KEPT_S - age)
        else:
            self._overviews.forget()

    def _start(self, *, anew: bool = True) -> None:
        if self._making is None and not self._closed:
            self._making = asyncio.create_task(self._make(anew))
            self._making.add_done_callback(partial(log_failure, "what a page shows"))

    def _is_time(self) -> bool:
        if self._awaited or any(shared.is_new for shared in self._shared.values()):
            return True
        rest = self._age()
        if rest < min(self._took) * READING_SHARE:
            return False
        return rest >= REST_S or self._overviews.ticks() != self._ticks

    def _age(self) -> float:
        """How many seconds ago the last look was."""
        return self._clock.monotonic() - self._made_at

    async def _make(self, anew: bool) -> None:
        """Make all views of a new look, or the new views of the last one if it is fresh."""
        try:
            overview = self._overview
            if anew or overview is None or self._age() >= FRESH_S:
                overview = await self._make_all()
            while new := [shared for shared in self._shared.values() if shared.is_new]:
                for shared in new:
                    await shared.make(self._views, overview)
        finally:
            self._making = None

    async def _glance(self, shared: SharedView) -> None:
        """Show the figures over the page before each of many queues has been looked at."""
        if (glance := await self._overviews.glance()) is not None:
            await shared.begin(self._views, glance)

    async def _make_all(self) -> Overview:
        began = self._clock.monotonic()
        self._awaited = False
        ticks = self._overviews.ticks()
        overview = await self._overviews.take()
        self._overview = None if self._awaited else overview
        for shared in list(self._shared.values()):
            await shared.make(self._views, overview)
        self._ticks, self._seen_at = ticks, overview.at
        self._made_at = self._clock.monotonic()
        self._took = (self._took[1], self._made_at - began)
        return overview


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
