"""The views that somebody looks at, and their frames.

At most once a second, all of them are made from one look, and not at all without readers. An
expensive look is taken seldom.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from zq.engine.subscribers.reading import NewsReader, log_failure
from zq.model.clock import Clock, Timer
from zq.model.errors import TooManyStreams, ZqError
from zq.operators.page.http.frames import ViewFrame
from zq.operators.page.http.views import View, Views
from zq.operators.page.service import Overviews
from zq.operators.page.service_overview import Overview

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
        """Why the view cannot be made."""

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
