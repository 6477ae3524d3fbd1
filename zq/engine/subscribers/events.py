"""The readers of events. Each of them goes through the window of the latest events at its own pace.

Events are kept only while somebody listens, and for a while after that. A tick wakes those readers
that have seen everything so far and may want its events: in turns, a few at a time. Every part that
a reader gets is a turn of its own. A reader whose peer does not read is not touched meanwhile. It
misses what the window no longer has, and is told of that.
"""

import itertools
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from zq.engine.after_commit import Committed
from zq.engine.subscribers.waking import SHARE, NewsReader, WakeLine
from zq.engine.subscribers.window import PART_BYTES, EventWindow, NumberedEvent, Wanted
from zq.model.clock import Clock, Timer
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.events import UNDER_WAY, EventRecord, EventType, Subject

KEEP_S = 600.0
"""The time for which events are kept, in seconds, also after the last listener has gone."""

SHARED_BYTES = 4 * 1024 * 1024
"""The most bytes of texts that are kept for other readers who want the same."""

TEXT_BYTES = 200
"""The memory that a text takes up besides its bytes."""

MOST_NAMED = 16
"""The most subjects for which a reader waits one by one. One that names more waits for more than
that."""

NO_JOB = -1
"""The key of no job."""

Name = int | tuple[str | None, EventType | None]
"""The subject that readers wait for: events of a job, by its key, or of a queue and a type. None
means any."""

Form = Callable[[Sequence[NumberedEvent]], bytes]
"""Makes the text of some events. Readers with equal forms share their texts."""


class Gap(NamedTuple):
    """Events are missing: how many, if that is known, and the id after which the next ones come."""

    missed: int | None
    event_id: str


class Reader(NewsReader):
    """One listener. It gets news by turns: call `EventHub.take` or `text` once after each wait."""

    def __init__(self, feed: "_Feed", position: int) -> None:
        super().__init__()
        self._feed = feed
        self._position = position
        """The number of the next event to look at. Of a reader that rests, its crowds know it."""
        self._crowds: list[_Crowd] = []
        """The crowds in which the reader rests, since it has seen everything."""
        self._wake.set()


class _Feed:
    """The texts that readers with the same choice and form share, by the beginnings of their
    parts."""

    def __init__(self, wanted: Wanted, form: Form | None) -> None:
        self.wanted = wanted
        self.names = _names_for(wanted)
        self.form = form
        self.readers: set[Reader] = set()
        self.texts: dict[int, tuple[int, bytes]] = {}


class _Crowd:
    """Readers that rest until there is news of one thing. `first` is the number of that event."""

    def __init__(self, home: "dict[Name, _Crowd]", name: Name) -> None:
        self.readers: dict[Reader, None] = {}
        self.first: int | None = None
        self._home, self._name = home, name

    def leave(self, reader: Reader) -> None:
        """Let a reader go. Nothing is kept of an empty crowd."""
        self.readers.pop(reader, None)
        if not self.readers and self._home.get(self._name) is self:
            del self._home[self._name]


class EventHub:
    """The window of events, and all its readers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line = WakeLine(clock, SHARE)
        self._feeds: dict[tuple[Wanted, Form | None], _Feed] = {}
        self._resting: dict[Name, _Crowd] = {}
        self._timer: Timer | None = None
        self._closed = False
        self._begin()

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self._window.next

    @contextmanager
    def reader(
        self, wanted: Wanted, last_id: str | None, form: Form | None = None
    ) -> Iterator[Reader]:
        """A reader within the context, from the event after `last_id` on.

        Without an id it begins with the next event. With an id that the window does not know, it
        begins with the oldest event that is kept, after a gap. `form` is for the use of `text`.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.listens = True
        feed = self._feeds.setdefault((wanted, form), _Feed(wanted, form))
        window = self._window
        position = window.next if last_id is None else window.position_after(last_id)
        reader = Reader(feed, position)
        feed.readers.add(reader)
        if position == window.next:
            self._let_rest(reader)
        if self._closed:
            reader.end()
        try:
            yield reader
        finally:
            self._rouse(reader)
            feed.readers.discard(reader)
            if not feed.readers:
                del self._feeds[wanted, form]
            if not self._feeds:
                self._timer = self._clock.call_later(KEEP_S, self._begin)

    def learn(self, committed: Committed) -> None:
        """Keep the events of a tick."""
        commands, result = committed.tick.commands, committed.result
        events = [_event(type, job) for type, jobs in result.news for job in jobs]
        for command, reply in (*zip(commands, result.replies, strict=True), *result.brought):
            if isinstance(command, Enqueue) and isinstance(reply, EnqueueResult):
                events += [
                    EventRecord(EventType.ENQUEUED, key, queue, job.unique_key, 0)
                    for key, queue, job in reply.stored(command)
                ]
        events += [_event(EventType.STARTED, job) for jobs in result.claimed for job in jobs]
        self.add(committed.tick.now, events)

    def add(self, now: int, events: Sequence[EventRecord]) -> None:
        """Add events of one time, if anybody listens or has listened recently."""
        if not events or not self.listens:
            return
        first = self._window.add(now, events)
        if self._resting:
            # A crowd with news leaves as a whole, so this costs the same however large it is.
            for name in self._resting.keys() & _names_of(events):
                crowd = self._resting.pop(name)
                crowd.first = first
                self._line.wake(crowd.readers, Reader.nudge)

    def gap(self, reader: Reader) -> Gap | None:
        """The gap of a reader whose next events are no longer kept; None if it misses nothing. It
        reads on after the gap.

        Events that are not of its choice count too.
        """
        position, first = self._place(reader), self._window.first
        if position >= first:
            return None
        self._rouse(reader)
        self._go_on(reader, first)
        return Gap(first - position if position else None, self.id(first - 1))

    def take(self, reader: Reader) -> list[NumberedEvent]:
        """The next events for a reader, perhaps none. Look for a `gap` before."""
        position = self._rouse(reader)
        position, told = self._window.part(position, reader._feed.wanted)
        self._go_on(reader, position)
        return told

    def text(self, reader: Reader) -> bytes:
        """The next events for a reader in its form, perhaps none. Look for a `gap` before.

        What has been made for a reader who wants the same is not made again.
        """
        position = self._rouse(reader)
        texts, size = [], 0
        while size < PART_BYTES and (part := reader._feed.texts.get(position)) is not None:
            position, text = part
            texts.append(text)
            size += len(text)
        if not texts:
            position, text = self._made(reader._feed, position)
            texts.append(text)
        self._go_on(reader, position)
        return b"".join(texts)

    def last_id(self, reader: Reader) -> str:
        """The id of the last event that a reader has received or passed over."""
        return self.id(self._place(reader) - 1)

    def id(self, number: int) -> str:
        """The id of an event, with which a listener can come back."""
        return self._window.id(number)

    def close(self) -> None:
        """End all readers."""
        self._closed = True
        for feed in self._feeds.values():
            for reader in feed.readers:
                reader.end()

    def _begin(self) -> None:
        """Forget everything. Older numbers can no longer be asked for."""
        self.listens = False
        """True if events are kept: somebody listens, or has listened recently."""
        self._timer = None
        self._window = EventWindow()
        self._shared: deque[tuple[_Feed, int]] = deque()
        """The texts that are kept, the oldest first."""
        self._shared_bytes = 0

    def _made(self, feed: _Feed, position: int) -> tuple[int, bytes]:
        """The next part of a feed, which is kept if there are others to read it."""
        assert feed.form is not None, "only a reader with a form is told texts"
        stop, told = self._window.part(position, feed.wanted)
        text = feed.form(told) if told else b""
        if len(feed.readers) > 1 and stop > position:
            feed.texts[position] = stop, text
            self._shared.append((feed, position))
            self._shared_bytes += len(text) + TEXT_BYTES
            while self._shared_bytes > SHARED_BYTES:
                oldest, first = self._shared.popleft()
                self._shared_bytes -= len(oldest.texts.pop(first)[1]) + TEXT_BYTES
        return stop, text

    def _place(self, reader: Reader) -> int:
        """The number of the next event that a reader has to look at."""
        if not reader._crowds:
            return reader._position
        news = [crowd.first for crowd in reader._crowds if crowd.first is not None]
        return min(news, default=self._window.next)

    def _rouse(self, reader: Reader) -> int:
        """Take a reader from where it rests. Return the number of the next event for it."""
        position = self._place(reader)
        for crowd in reader._crowds:
            crowd.leave(reader)
        reader._crowds = []
        return position

    def _go_on(self, reader: Reader, position: int) -> None:
        """Let a reader that has come so far stand in line for more, or rest."""
        reader._position = position
        if position < self._window.next:
            self._line.wake({reader: None}, Reader.nudge)
        else:
            self._let_rest(reader)

    def _let_rest(self, reader: Reader) -> None:
        for name in reader._feed.names:
            crowd = self._resting.get(name)
            if crowd is None:
                crowd = self._resting[name] = _Crowd(self._resting, name)
            crowd.readers[reader] = None
            reader._crowds.append(crowd)


def _names_for(wanted: Wanted) -> list[Name]:
    """The subjects that a reader with this choice waits for."""
    if wanted.keys is not None and len(wanted.keys) <= MOST_NAMED:
        return [*(wanted.keys or (NO_JOB,))]
    queues: Collection[str | None] = wanted.queues or (None,)
    types: Collection[EventType | None] = wanted.types or (None,)
    if len(queues) > MOST_NAMED:
        queues = (None,)
    if len(queues) * len(types) > MOST_NAMED:
        types = (None,)
    return list(itertools.product(queues, types))


def _names_of(events: Sequence[EventRecord]) -> set[Name]:
    """All that somebody may wait for who wants one of these events."""
    pairs = {(event.queue, event.type) for event in events}
    names: set[Name] = {(None, None), *pairs, *(event.key for event in events)}
    names.update((queue, None) for queue, _ in pairs)
    names.update((None, type) for _, type in pairs)
    return names


def _event(type: EventType, job: Subject) -> EventRecord:
    attempt = job.attempts + 1 if type in UNDER_WAY else job.attempts
    return EventRecord(type, job.key, job.queue, job.unique_key, attempt)
