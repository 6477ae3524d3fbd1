"""The latest events in memory, numbered from 1.

Each tick is one entry, in the form in which the tick has reported it. It becomes text only when
somebody reads it.
"""

import secrets
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from zq.model.events import EventRecord, EventType
from zq.model.reach import EVERYWHERE, Reach

MOST_EVENTS = 100_000
MOST_BYTES = 16 * 1024 * 1024
EVENT_BYTES = 200
"""The approximate size of an event in memory besides its texts."""

LOOKED_AT = 500
"""The most events that are examined in one go."""

PART_BYTES = 64 * 1024
"""The size in bytes at which a part of the events' texts ends."""


class Wanted(NamedTuple):
    """A listener's choice of events: different fields AND together, the values of one OR.

    No queues, or no types, means all of them. `keys` of None means all jobs.
    """

    queues: frozenset[str] = frozenset()
    keys: frozenset[int] | None = None
    types: frozenset[EventType] = frozenset()
    reach: Reach = EVERYWHERE

    def includes(self, event: EventRecord) -> bool:
        """True if the choice includes an event."""
        return (
            (self.keys is None or event.key in self.keys)
            and (not self.types or event.type in self.types)
            and (not self.queues or event.queue in self.queues)
            and (self.reach is EVERYWHERE or self.reach.covers(event.queue))
        )


class NumberedEvent(NamedTuple):
    """An event with its number and its time in milliseconds."""

    number: int
    ts: int
    event: EventRecord


class _Entry(NamedTuple):
    first: int
    ts: int
    events: Sequence[EventRecord]
    size: int


class EventWindow:
    """The window of events. A number means nothing in another `epoch`."""

    def __init__(self) -> None:
        self.epoch = secrets.token_hex(4)
        self.next = 1
        """The number of the next event."""
        self._entries: dict[int, _Entry] = {}
        self._first_entry, self._last_entry = 1, 0
        self._bytes = 0

    @property
    def first(self) -> int:
        """The number of the oldest event that is kept."""
        oldest = self._entries.get(self._first_entry)
        return self.next if oldest is None else oldest.first

    def add(self, now: int, events: Sequence[EventRecord]) -> int:
        """Add events of one time. Return the number of the first of them."""
        first = self.next
        size = sum(EVENT_BYTES + _length(event) for event in events)
        self._last_entry += 1
        self._entries[self._last_entry] = _Entry(first, now, events, size)
        self.next += len(events)
        self._bytes += size
        while self.next - self.first > MOST_EVENTS or self._bytes > MOST_BYTES:
            self._bytes -= self._entries.pop(self._first_entry).size
            self._first_entry += 1
        return first

    def part(self, position: int, wanted: Wanted) -> tuple[int, list[NumberedEvent]]:
        """The next events of a choice, perhaps none, and the number from which to go on."""
        told: list[NumberedEvent] = []
        size, stop = 0, min(position + LOOKED_AT, self.next)
        place = self._place(position)
        while position < stop:
            entry = self._entries[place]
            start = position - entry.first
            for event in entry.events[start : start + stop - position]:
                if wanted.includes(event):
                    told.append(NumberedEvent(position, entry.ts, event))
                    size += EVENT_BYTES + _length(event)
                position += 1
                if size >= PART_BYTES:
                    return position, told
            place += 1
        return position, told

    def position_after(self, last_id: str) -> int:
        """The number of the event after one with an id; 0 if there has never been one with it."""
        epoch, _, number = last_id.partition("-")
        known = epoch == self.epoch and number.isascii() and number.isdigit()
        position = int(number[:18]) + 1 if known else 0
        return position if position <= self.next else 0

    def id(self, number: int) -> str:
        """The id of an event, with which a listener can come back."""
        return f"{self.epoch}-{number}"

    def _place(self, number: int) -> int:
        """The entry that an event is in."""
        places = range(self._first_entry, self._last_entry + 1)
        found = bisect_right(places, number, key=lambda place: self._entries[place].first)
        return self._first_entry + found - 1


def _length(event: EventRecord) -> int:
    return len(event.queue) + len(event.unique_key or "") + len(event.data or "")
