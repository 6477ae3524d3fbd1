"""The viewers of changing lists of jobs, and the frames that they get.

A tick only tells that something has changed. At most every tenth of a second, each view with
viewers is read again, once for all its viewers, by a connection of its own. Viewers see the
database, and nothing of it is kept twice. Without viewers nothing is done.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, Self

import msgspec

from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine
from zq.engine.subscribers.waking import NewsReader, log_failure
from zq.model.clock import Clock, Timer
from zq.model.errors import TooManyStreams
from zq.model.events import EventType, News
from zq.model.job import JobRecord
from zq.operators.admin.model import FoundJob, JobSearch, ListName, ListsView, ViewContents
from zq.operators.admin.store import ListReads

MOST_CHANGES = 24
"""The most changes that are listed one by one. Above that, whole windows are shorter."""


class WindowEvent(Enum):
    """The event of a job in a window."""

    ENTERED = "entered"
    LEFT = "left"
    COMPLETED = "completed"
    FAILED = "failed"


class JobChange(NamedTuple):
    """One job that has entered or left a window, or has ended. `job` is set if it enters."""

    list: ListName
    passage: WindowEvent
    key: int
    job: JobRecord | None = None


class Frame(msgspec.Struct, eq=False):
    """One moment of a view. Frames of a view are numbered without gaps."""

    number: int
    sight: ViewContents
    changes: Sequence[JobChange] | None
    """The changes since the last frame, in order. None means: use the windows."""
    texts: dict[Any, Any] = msgspec.field(default_factory=dict)
    """The text that each door has made of the frame, shared by all viewers."""


ENDINGS = {
    EventType.COMPLETED: WindowEvent.COMPLETED,
    EventType.FAILED: WindowEvent.FAILED,
    EventType.RETRYING: WindowEvent.FAILED,
}


def changes_between(
    before: ViewContents,
    after: ViewContents,
    endings: Callable[[Collection[int]], Mapping[int, WindowEvent]],
) -> list[JobChange] | None:
    """The jobs that have entered and left each window; None if a list cannot show every change.

    `endings` says of jobs that were in flight, by their keys, how they ended.
    """
    left: list[tuple[ListName, int]] = []
    entered: list[JobChange] = []
    for name, window in after.windows.items():
        old = before.windows[name]
        if (old.first_position, old.anchor) != (window.first_position, window.anchor):
            return None
        known = {job.key: job for job in old.jobs}
        for job in window.jobs:
            was = known.pop(job.key, None)
            if was is None:
                entered.append(JobChange(name, WindowEvent.ENTERED, job.key, job))
            elif was != job:
                return None
        left += [(name, key) for key in known]
        if len(left) + len(entered) > MOST_CHANGES:
            return None
    # A job that leaves makes room for one that enters.
    return _departures(left, endings) + entered


def _departures(
    left: Sequence[tuple[ListName, int]],
    endings: Callable[[Collection[int]], Mapping[int, WindowEvent]],
) -> list[JobChange]:
    """Jobs that have left, in order: a job whose end is known has ended, and then left."""
    in_flight = {key for name, key in left if name is ListName.IN_FLIGHT}
    ended = endings(in_flight) if in_flight else {}
    ends = [JobChange(ListName.IN_FLIGHT, passage, key) for key, passage in ended.items()]
    return ends + [JobChange(name, WindowEvent.LEFT, key) for name, key in left]


BEAT_S = 0.1
"""Two frames are at least this far apart."""

READING_SHARE = 50
"""A view is read for at most 1/50 of the time, so an expensive view changes seldom."""

MOST_VIEWERS = 64

MOST_NEWS = 20_000
"""The most endings of jobs that are kept from one frame to the next."""


class Viewer(NewsReader):
    """One viewer of a view."""

    def __init__(self) -> None:
        super().__init__()
        self._shared: _SharedView | None = None

    @property
    def frame(self) -> Frame | None:
        """The current frame of its view."""
        return None if self._shared is None else self._shared.frame


class Viewers:
    """All viewers. They subscribe to ticks while there are any."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """The viewers of an engine."""
        viewers = cls(engine.store.reads.of(ListReads), engine.clock)
        engine.when_let_go.append(viewers.close)
        return viewers

    def __init__(self, reads: ListReads, clock: Clock) -> None:
        self._reads = reads
        self._clock = clock
        self._viewers: set[Viewer] = set()
        self.listens: Collection[Viewer] = self._viewers
        """Not empty while there are viewers."""
        self._views: dict[ListsView, _SharedView] = {}
        self._timer: Timer | None = None
        self._beaten = float("-inf")
        self._version = 0
        self._endings = _Endings()
        self._closed = False

    def __len__(self) -> int:
        return len(self._viewers)

    @contextmanager
    def one_more(self) -> Iterator[Viewer]:
        """A viewer within the context. Raises `TooManyStreams`."""
        if len(self._viewers) >= MOST_VIEWERS:
            raise TooManyStreams(
                f"{MOST_VIEWERS} viewers are here already, as many as there may be: close one"
            )
        viewer = Viewer()
        self._viewers.add(viewer)
        if self._closed:
            viewer.end()
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
            self._leave(viewer)
            if not self._viewers:
                self._endings.forget()

    async def show(self, viewer: Viewer, view: ListsView) -> Frame:
        """Switch a viewer to another view. Return the frame of that view.

        Raises `ReadTimeout` or `ReadersBusy`. The viewer then keeps its view.
        """
        shared = self._views.get(view)
        if shared is None:
            shared = self._views[view] = _SharedView(view, self._reads, self._clock, self._endings)
        shared.watchers.add(viewer)
        try:
            frame = await shared.first(self._version)
        except BaseException:
            if viewer._shared is not shared:
                self._abandon(shared, viewer)
            raise
        if viewer._shared is not shared:
            self._leave(viewer)
            viewer._shared = shared
        return frame

    async def search(self, wanted: JobSearch) -> FoundJob:
        """Find the next job that matches. Raises `ReadTimeout` or `ReadersBusy`."""
        return await self._reads.search(wanted)

    def learn(self, committed: Committed) -> None:
        """Note that something has changed. The views are read again soon."""
        self._version += 1
        self._endings.note(self._version, committed.result.news)
        if self._timer is None:
            wait = self._beaten + BEAT_S - self._clock.monotonic()
            self._timer = self._clock.call_later(max(wait, 0.0), self._beat)

    def close(self) -> None:
        """End all viewers."""
        self._closed = True
        for viewer in self._viewers:
            viewer.end()

    def _beat(self) -> None:
        """Read all views again that are out of date and may be read."""
        self._timer = None
        if not self._viewers:
            return
        self._beaten = now = self._clock.monotonic()
        behind = False
        for shared in self._views.values():
            behind |= shared.beat(self._version, now)
        if behind:
            self._timer = self._clock.call_later(BEAT_S, self._beat)
        oldest = min((shared.version for shared in self._views.values()), default=self._version)
        self._endings.forget(oldest)

    def _leave(self, viewer: Viewer) -> None:
        shared, viewer._shared = viewer._shared, None
        if shared is not None:
            self._abandon(shared, viewer)

    def _abandon(self, shared: "_SharedView", viewer: Viewer) -> None:
        shared.watchers.discard(viewer)
        if not shared.watchers and self._views.get(shared.view) is shared:
            del self._views[shared.view]
            shared.close()


class _Endings:
    """How jobs in flight have ended, tick by tick, as far as it is known."""

    def __init__(self) -> None:
        self._news: deque[tuple[int, Sequence[News]]] = deque()
        self._jobs = 0

    def note(self, version: int, news: Sequence[News]) -> None:
        """Keep the news of a tick. Only references are kept."""
        if not news:
            return
        self._news.append((version, news))
        self._jobs += _jobs_in(news)
        while self._jobs > MOST_NEWS:
            self._drop()

    def forget(self, upto: float = float("inf")) -> None:
        """Forget everything up to a version."""
        while self._news and self._news[0][0] <= upto:
            self._drop()

    def since(self, version: int, keys: Collection[int]) -> dict[int, WindowEvent]:
        """How those of some jobs have ended that ended since a version, by their keys."""
        return {
            job.key: ENDINGS[type]
            for at, news in self._news
            if at > version
            for type, jobs in news
            if type in ENDINGS
            for job in jobs
            if job.key in keys
        }

    def _drop(self) -> None:
        self._jobs -= _jobs_in(self._news.popleft()[1])


def _jobs_in(news: Sequence[News]) -> int:
    return sum(len(jobs) for _, jobs in news)


class _SharedView:
    """One view with viewers, and its current frame."""

    def __init__(self, view: ListsView, reads: ListReads, clock: Clock, endings: _Endings) -> None:
        self.view = view
        self.watchers: set[Viewer] = set()
        self.frame: Frame | None = None
        self.version = -1
        """The version that its frame shows."""
        self._reads = reads
        self._clock = clock
        self._endings = endings
        self._rested = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def first(self, version: int) -> Frame:
        """Return the frame. Read it now if nobody has looked at this view before."""
        while self.frame is None:
            await asyncio.shield(self._reading or self._begin(version))
        return self.frame

    def beat(self, version: int, now: float) -> bool:
        """Begin to read it again if it is out of date and may be read. Return whether it was."""
        if self.version == version:
            return False
        if self.frame is not None and self._reading is None and now >= self._rested:
            self._begin(version)
        return True

    def close(self) -> None:
        """End: the last viewer has left."""
        if self._reading is not None:
            self._reading.cancel()

    def _begin(self, version: int) -> asyncio.Task[None]:
        self._reading = task = asyncio.create_task(self._read(version))
        task.add_done_callback(partial(log_failure, "a view"))
        return task

    async def _read(self, version: int) -> None:
        began = self._clock.monotonic()
        try:
            self._show(await self._reads.sight(self.view), version)
        finally:
            self._reading = None
            ended = self._clock.monotonic()
            self._rested = ended + (ended - began) * READING_SHARE

    def _show(self, sight: ViewContents, version: int) -> None:
        before, since = self.frame, self.version
        self.version = version
        if before is None:
            self.frame = Frame(0, sight, None)
        else:
            endings = partial(self._endings.since, since)
            changes = changes_between(before.sight, sight, endings)
            if changes == [] and sight.totals == before.sight.totals:
                return
            self.frame = Frame(before.number + 1, sight, changes)
        for viewer in self.watchers:
            viewer.nudge()


SUBSCRIBERS = ((Awaited.BY_NOBODY, Viewers),)
