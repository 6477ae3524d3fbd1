"""How long jobs wait on lanes, by the time that has passed.

The key of a job and its `ready_at` are dates, and a device's clock is set while its jobs wait: one
without a battery has 1970 until its network is back. So marks say what had waited when.
"""

from typing import NamedTuple

import msgspec

from zq.engine.inbox import Inbox
from zq.model.clock import MARK_EVERY_MS
from zq.model.commands import WriteNote
from zq.store.api import Store

PARTS = 64
"""A job may wait for one part in so many longer than it should before that is noticed."""


class AgeMark(NamedTuple):
    """A moment by both clocks, and the highest key of a job then."""

    steady: int
    wall: int
    key: int


class LaneAges:
    """Marks of moments at which lanes had jobs. They are stored, and go on after a start."""

    def __init__(self, store: Store, inbox: Inbox) -> None:
        self._store = store
        self._inbox = inbox
        self._marks: dict[str, list[AgeMark]] = {}
        """By lane, the oldest first."""
        self._stored: dict[str, int] = {}
        """The steady time of each lane's last mark that is stored."""

    async def reached(self, lane: str, age_ms: int) -> list[AgeMark]:
        """Mark this moment, and return the marks of a lane that are at least so old.

        A ready job has waited for that long if neither its key nor `ready_at` is beyond one of
        them.
        """
        _, key = await self._store.reads.key_range()
        wall, steady = self._store.steady.read()
        if lane not in self._marks:
            noted = await self._store.reads.noted(_note(lane), list[AgeMark]) or []
            self._marks[lane] = [mark for mark in noted if mark.steady <= steady]
        marks = self._marks[lane]
        if not marks or steady - marks[-1].steady >= age_ms // PARTS:
            marks.append(AgeMark(steady, wall, key))
        old = [mark for mark in marks if mark.steady <= steady - age_ms]
        later = marks[len(old) :]
        # A mark says what older ones say, unless the clock was set back in between.
        old = [
            mark for at, mark in enumerate(old) if all(mark.wall > m.wall for m in old[at + 1 :])
        ]
        self._marks[lane] = old + later
        return old

    async def store(self) -> None:
        """Store what marks there are, of each lane about once a minute at the most."""
        for lane, marks in self._marks.items():
            if self._store.leads and marks[-1].steady - self._stored.get(lane, 0) >= MARK_EVERY_MS:
                await self._inbox.ask(WriteNote(_note(lane), msgspec.json.encode(marks).decode()))
                self._stored[lane] = marks[-1].steady


def _note(lane: str) -> str:
    return f"ages of lane {lane}"
