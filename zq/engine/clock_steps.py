"""Says that the wall clock was set: in the log, as an event, and for `/health` and metrics.

Durations do not notice a step. Dates do: a step forward makes those due that lie in between. They
are counted first, so that nothing becomes due in mass without an explanation.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from zq.engine.subscribers.events import NO_JOB, EventHub
from zq.model.clock import ClockStep, SteadyClock
from zq.model.errors import ZqError
from zq.model.events import EventRecord, EventType
from zq.store.errors import StoreError
from zq.store.lookups import DueDates
from zq.store.reads import Reads

log = logging.getLogger(__name__)

LARGE_MS = 60_000
"""Smaller steps are usual, and nobody is told of them."""


class NotedStep(NamedTuple):
    """A large step of the wall clock, and the dates that became due by it, if they are known."""

    by: int
    at: int
    due: DueDates | None

    def fields(self) -> dict[str, int]:
        """How many dates of each kind became due."""
        return (
            {} if self.due is None else {f"due_{kind}": n for kind, n in self.due._asdict().items()}
        )


class ClockSteps:
    """The large steps of the wall clock. Begin with `start`, in the event loop."""

    def __init__(
        self, steady: SteadyClock, reads: Reads, events: EventHub, hold: Callable[[bool], object]
    ) -> None:
        """`hold` is called with True while dates have to wait, and with False after that."""
        self.count = 0
        """How many there were since the start."""
        self.latest: NotedStep | None = None
        self._steady = steady
        self._reads = reads
        self._events = events
        self._hold = hold
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Learn of steps from now on, and of one since the last stop."""
        self._steady.on_step = self._learn
        if self._steady.last_step is not None:
            self._learn(self._steady.last_step)

    async def stop(self) -> None:
        """Learn of no more steps."""
        self._steady.on_step = None
        for task in self._tasks:
            task.cancel()
        await self.told()

    async def told(self) -> None:
        """Wait until every step so far has been told. Dates that have come wait for that."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _learn(self, step: ClockStep) -> None:
        if abs(step.by) < LARGE_MS:
            return
        if step.by > 0:
            self._hold(True)
        task = asyncio.create_task(self._look_into(step), name="zq-clock-step")
        self._tasks.add(task)
        task.add_done_callback(self._release)

    def _release(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._hold(False)

    async def _look_into(self, step: ClockStep) -> None:
        due: DueDates | None = DueDates(0, 0, 0)
        try:
            if step.by > 0:
                due = await self._reads.due_between(step.before, step.at)
        except (ZqError, StoreError):
            due = None  # They are too many to be counted, or the disk has failed.
        self.count += 1
        self.latest = NotedStep(step.by, step.at, due)
        fields = {"by_ms": step.by} | self.latest.fields()
        log.warning(_text(self.latest), extra={"fields": fields})
        data = msgspec.json.encode(fields).decode()
        told = EventRecord(EventType.CLOCK_SET, NO_JOB, "", None, 0, data)
        self._events.add(step.at, [told])


def _text(step: NotedStep) -> str:
    way = "forward" if step.by > 0 else "back"
    length = timedelta(seconds=round(abs(step.by) / 1000))
    text = f"the clock was set {way} by {length}, to {_date(step.at)}: durations go on as before"
    if step.by < 0:
        return f"{text}, and dates come that much later"
    if step.due is None:
        return f"{text}; the dates that became due by it could not be counted"
    jobs, schedules, pauses = step.due
    return (
        f"{text}; {jobs:,} scheduled jobs, {schedules:,} schedules and the ends of {pauses:,}"
        " pauses became due by it"
    )


def _date(ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms since 1970"
