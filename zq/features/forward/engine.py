"""Wakes lanes: somebody may have stored a job in one of their queues, or the disk has them.

The engine learns here which queues leave.
"""

import asyncio
from collections.abc import Callable
from typing import Self

import msgspec

from zq.engine.after_commit import Awaited, Committed
from zq.engine.engine import Engine, RunningPart
from zq.engine.leaving import LeavingQueues
from zq.features.forward.model import LEAVING
from zq.model.queue_patterns import QueuePatterns


class LaneBell:
    """Sets the events of lanes after ticks in which their queues have changed."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        bell = cls()
        engine.when_heard.append(bell.ring)
        return bell

    def __init__(self) -> None:
        self.listens: dict[asyncio.Event, QueuePatterns] = {}
        """The events of lanes, each with the queues of its lane."""

    def watch(self, event: asyncio.Event, patterns: QueuePatterns) -> None:
        """Set an event whenever jobs of these queues may have come."""
        self.listens[event] = patterns

    def ring(self) -> None:
        """Set all events: another server may have stored jobs."""
        for event in self.listens:
            event.set()

    def forget(self, event: asyncio.Event) -> None:
        """Set the event no more."""
        self.listens.pop(event, None)

    def learn(self, committed: Committed) -> None:
        queues = committed.result.counted | committed.result.woken
        if not queues:
            return
        for event, patterns in self.listens.items():
            if not event.is_set() and any(map(patterns.covers, queues)):
                event.set()


class SyncBell:
    """Tells when what has been answered is on the disk as well: in buffered mode that is later."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        bell = cls(is_needed=not engine.durability.enqueues)
        engine.when_synced.append(bell._ring)
        return bell

    def __init__(self, *, is_needed: bool) -> None:
        self._is_needed = is_needed
        self.listens: list[asyncio.Event] = []
        """The events that are set when what was stored is on the disk."""

    async def wait(self) -> None:
        """Wait until new jobs are on the disk that have been stored until now."""
        if self._is_needed:
            synced = asyncio.Event()
            self.listens.append(synced)
            await synced.wait()

    def learn(self, committed: Committed) -> None:
        if committed.result.durable:
            self._ring()

    def _ring(self) -> None:
        waiting, self.listens = self.listens, []
        for synced in waiting:
            synced.set()


class DropBell:
    """Tells of jobs that were dropped to make room on a lane."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        return cls()

    def __init__(self) -> None:
        self.listens: list[Callable[[str, int], object]] = []
        """Functions that are called with the name of a lane and a number of jobs."""

    def learn(self, committed: Committed) -> None:
        for lane, dropped in committed.result.displaced:
            for tell in self.listens:
                tell(lane, dropped)


class LeavingNotes(RunningPart):
    """Notes the queues of all lanes for the engine, at its start and whenever they change."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        notes = cls(engine.leaving)
        notes.note(engine.store.at_start.found[LEAVING])
        engine.when_found[LEAVING] = notes.note
        return notes

    def __init__(self, leaving: LeavingQueues) -> None:
        self._leaving = leaving
        self._noted = ""

    def note(self, queues: str) -> None:
        """Learn the queues as a JSON list. Servers that share a store hear it again and again."""
        if queues != self._noted:
            self._leaving.patterns = QueuePatterns.of(msgspec.json.decode(queues, type=list[str]))
            self._noted = queues


RUNNING = (LeavingNotes,)

SUBSCRIBERS = (
    (Awaited.BY_NOBODY, LaneBell),
    (Awaited.BY_REQUESTS, SyncBell),
    (Awaited.BY_NOBODY, DropBell),
)
