"""The latest events in memory, and their readers.

Each tick is one entry, in the form in which the tick has reported it. It becomes text only when
somebody reads it. Events are kept only while somebody listens, and for a while after that.
"""

import asyncio
import secrets
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from zq.engine.after_commit import Committed
from zq.model.clock import Clock, Timer
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.events import UNDER_WAY, EventRecord, EventType, Subject
from zq.model.reach import EVERYWHERE, Reach

MOST_EVENTS = 100_000
MOST_BYTES = 16 * 1024 * 1024
EVENT_BYTES = 200
"""The approximate size of an event in memory besides its texts."""

KEEP_S = 600.0
"""Events are kept for so long, also after the last listener has gone."""

LOOKED_AT = 2_000
"""A reader looks at so many events in one go, so that other tasks get their turn."""


class Wanted(NamedTuple):
    """A listener's choice of events: different fields AND together, the values of one OR.

    No queues, or no types, means all of them. `keys` of None means all jobs.
    """

    queues: frozenset[str] = frozenset()
    keys: frozenset[int] | None = None
    types: frozenset[EventType] = frozenset()
    reach: Reach = EVERYWHERE

    def includes(self, event: EventRecord) -> bool:
        """Whether the choice includes an event."""
        return (
            (self.keys is None or event.key in self.keys)
            and (not self.types or event.type in self.types)
            and (not self.queues or event.queue in self.queues)
            and (self.reach is EVERYWHERE or self.reach.covers(event.queue))
        )


class Told(NamedTuple):
    """An event with its number and its time in milliseconds."""

    number: int
    ts: int
    event: EventRecord


class Reader:
    """One listener. While it is `idle`, no event waits for it."""

    def __init__(self, wanted: Wanted, position: int, idle: bool) -> None:
        self.wanted = wanted
        self.position = position
        """The number of the next event to look at. It has no meaning while idle."""
        self.idle = idle
        self.ended = False
        self._wake = asyncio.Event()
        self._wake.set()

    def end(self) -> None:
        """End the reader: its handler completes the response."""
        self.ended = True
        self._wake.set()

    def nudge(self) -> None:
        """Wake the handler."""
        self._wake.set()

    async def wait(self) -> None:
        """Wait until there is something to look at."""
        await self._wake.wait()
        self._wake.clear()


class _Entry(NamedTuple):
    first: int
    ts: int
    events: Sequence[EventRecord]
    size: int


class EventHub:
    """The window of events, numbered from 1. A number means nothing in another `epoch`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ranging: set[Reader] = set()
        self._by_key: dict[int, set[Reader]] = {}
        self._timer: Timer | None = None
        self._closed = False
        self._begin()

    @property
    def next(self) -> int:
        """The number of the next event."""
        return self._next

    @contextmanager
    def reader(self, wanted: Wanted, last_id: str | None) -> Iterator[Reader]:
        """A reader within the context, from the event after `last_id` on.

        Without an id it begins with the next event. With an id that the window does not know, it
        begins with the oldest event that is kept: see `lost`.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.listens = True
        reader = self._new_reader(wanted, last_id)
        homes = [self._ranging]
        if wanted.keys is not None:
            homes = [self._by_key.setdefault(key, set()) for key in wanted.keys]
        for home in homes:
            home.add(reader)
        try:
            yield reader
        finally:
            for home in homes:
                home.discard(reader)
            for key in wanted.keys or ():
                if not self._by_key.get(key, True):
                    del self._by_key[key]
            if not self._ranging and not self._by_key:
                self._timer = self._clock.call_later(KEEP_S, self._begin)

    def learn(self, committed: Committed) -> None:
        """Keep the events of a tick."""
        commands, result = committed.tick.commands, committed.result
        events = [_event(type, job) for type, jobs in result.news for job in jobs]
        for command, reply in zip(commands, result.replies, strict=True):
            if isinstance(command, Enqueue) and isinstance(reply, EnqueueResult):
                events += _enqueued(command, reply)
        events += [_event(EventType.STARTED, job) for jobs in result.claimed for job in jobs]
        self.add(committed.tick.now, events)

    def add(self, now: int, events: Sequence[EventRecord]) -> None:
        """Add events of one time, if anybody listens or has listened recently."""
        if not events or not self.listens:
            return
        size = sum(EVENT_BYTES + _length(event) for event in events)
        entry = _Entry(self._next, now, events, size)
        self._entries[self._last_entry + 1] = entry
        self._last_entry += 1
        self._next += len(events)
        self._bytes += size
        while self._next - self.first > MOST_EVENTS or self._bytes > MOST_BYTES:
            self._bytes -= self._entries.pop(self._first_entry).size
            self._first_entry += 1
        for reader in self._ranging:
            self._alert(reader, entry)
        if self._by_key:
            for key in self._by_key.keys() & {event.key for event in events}:
                for reader in self._by_key[key]:
                    self._alert(reader, entry)

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept."""
        oldest = self._entries.get(self._first_entry)
        return self._next if oldest is None else oldest.first

    def lost(self, reader: Reader) -> bool:
        """Whether the next events for a reader are no longer kept."""
        return not reader.idle and reader.position < self.first

    def take(self, reader: Reader) -> list[Told]:
        """The next events for a reader, perhaps none. It is idle once it has all."""
        told: list[Told] = []
        stop = min(reader.position + LOOKED_AT, self._next)
        place = self._place(reader.position)
        while reader.position < stop:
            entry = self._entries[place]
            start = reader.position - entry.first
            some = entry.events[start : start + stop - reader.position]
            told += [
                Told(number, entry.ts, event)
                for number, event in enumerate(some, reader.position)
                if reader.wanted.includes(event)
            ]
            reader.position += len(some)
            place += 1
        reader.idle = reader.position == self._next
        return told

    def last_id(self, reader: Reader) -> str:
        """The id of the last event that a reader has received or passed over."""
        return self.id(self._next - 1 if reader.idle else reader.position - 1)

    def id(self, number: int) -> str:
        """The id of an event, with which a listener can come back."""
        return f"{self.epoch}-{number}"

    def close(self) -> None:
        """End all readers."""
        self._closed = True
        for reader in {*self._ranging, *(r for some in self._by_key.values() for r in some)}:
            reader.end()

    def _begin(self) -> None:
        """Forget everything. Older numbers can no longer be asked for."""
        self.epoch = secrets.token_hex(4)
        self.listens = False
        """Whether events are kept: somebody listens, or has listened recently."""
        self._timer = None
        self._entries: dict[int, _Entry] = {}
        self._first_entry, self._last_entry = 1, 0
        self._next = 1
        self._bytes = 0

    def _new_reader(self, wanted: Wanted, last_id: str | None) -> Reader:
        if last_id is None:
            reader = Reader(wanted, self._next, True)
        else:
            epoch, _, number = last_id.partition("-")
            known = epoch == self.epoch and number.isascii() and number.isdigit()
            # An unknown id counts as one before the oldest: the reader has lost events.
            position = int(number[:18]) + 1 if known else 0
            position = position if position <= self._next else 0
            reader = Reader(wanted, position, position == self._next)
        if self._closed:
            reader.end()
        return reader

    def _alert(self, reader: Reader, entry: _Entry) -> None:
        if reader.idle:
            reader.idle = False
            reader.position = entry.first
        reader.nudge()

    def _place(self, number: int) -> int:
        """The entry that an event is in."""
        places = range(self._first_entry, self._last_entry + 1)
        found = bisect_right(places, number, key=lambda place: self._entries[place].first)
        return self._first_entry + found - 1


def _event(type: EventType, job: Subject) -> EventRecord:
    attempt = job.attempts + 1 if type in UNDER_WAY else job.attempts
    return EventRecord(type, job.key, job.queue, job.unique_key, attempt)


def _enqueued(command: Enqueue, reply: EnqueueResult) -> Iterator[EventRecord]:
    joined = reply.joined
    for index, (key, job) in enumerate(zip(command.keys, command.jobs, strict=True)):
        if index not in joined:
            queue = reply.queues.get(index, job.queue)
            yield EventRecord(EventType.ENQUEUED, key, queue, job.unique_key, 0)


def _length(event: EventRecord) -> int:
    return len(event.queue) + len(event.unique_key or "") + len(event.data or "")
