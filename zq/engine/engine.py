"""The engine: the loop, its guides, and everything that memory learns from ticks."""

import asyncio
from collections.abc import Sequence
from datetime import tzinfo
from typing import NamedTuple

from zq.doors.topics.engine import TopicReaders
from zq.engine.after_commit import Subscriber
from zq.engine.clock_steps import ClockSteps
from zq.engine.delivery.signs import LifeSigns
from zq.engine.delivery.streams import Streams
from zq.engine.foreign_lock import ForeignLock
from zq.engine.inbox import Inbox
from zq.engine.loop import Durability, Guides, TickLoop
from zq.engine.pace import Pace
from zq.engine.subscribers.changes import QueueChanges
from zq.engine.subscribers.events import EventHub
from zq.engine.subscribers.figures import Flows, Stats
from zq.engine.subscribers.recent import Pulse
from zq.engine.subscribers.tallies import QueueTallies
from zq.engine.subscribers.waiters import HistoryReaders, Waiters
from zq.engine.timetable import Alarm, Openings, Timetable
from zq.engine.turns import Turns
from zq.engine.upkeep import Upkeep
from zq.features.crons.engine import Scheduler
from zq.features.trends.engine import TrendMeter
from zq.model.clock import Clock
from zq.model.commands import SetAside
from zq.model.ids import Mint
from zq.operators.admin.engine import Viewers
from zq.store.api import Store


class EngineOptions(NamedTuple):
    """The engine's settings. `reaper_interval` is in seconds; `recording` concerns the history."""

    global_in_flight_limit: int
    max_inbox_jobs: int
    reaper_interval: float
    recording: bool
    durability: Durability
    zone: tzinfo
    """The server's own time zone, for cron entries without one."""


class Engine:
    """The engine of one store. Start it in the event loop that it runs in."""

    def __init__(self, store: Store, clock: Clock, options: EngineOptions) -> None:
        self.inbox = Inbox(options.max_inbox_jobs)
        self.streams = Streams(
            *(options.global_in_flight_limit, store.claimed, self.inbox.give_back, store.slot),
            *(store.died, store.last_holder),
        )
        self.turns = Turns()
        """Where work that takes longer than a slice waits, whichever request it is for."""
        self.signs = LifeSigns(clock, self.streams)
        self.waiters = Waiters(clock)
        self.events = EventHub(clock)
        self.history = HistoryReaders(store.logged, clock, recording=options.recording)
        self.topics = TopicReaders(clock)
        self.mint = Mint(store.last_key, store.slot)
        """Gives new jobs their keys, whichever door they come through."""
        self.scheduler = Scheduler(store, clock, self.inbox, self.mint, options.zone)
        self.flows = Flows(clock)
        self.stats = Stats()
        self.tallies = QueueTallies()
        self.changes = QueueChanges()
        self.trends = TrendMeter(clock, self.inbox)
        self.pulse = Pulse(self.stats)
        alarm = Alarm(clock, self.inbox.awake.set)
        self.lock = ForeignLock(clock)
        """The lock of another program that is in the way."""
        upkeep = Upkeep(store, clock, self.history, self.lock, alarm.ring)
        self.compact = upkeep.compact
        """Gives all free space back. Its future is done when that has happened."""
        self.viewers = Viewers(store.reads, clock)
        self.openings = Openings(clock)
        """When the rates of queues let the next jobs through."""
        timetable = Timetable(clock, store.steady, store.deadlines, options.reaper_interval)

        def hold(wait: bool) -> None:
            timetable.holds_dates = wait
            alarm.ring()

        self.steps = ClockSteps(store.steady, store.reads, self.events, hold)
        """The steps of the wall clock."""
        self.scheduler.ready = self.steps.told
        guides = Guides(
            alarm,
            timetable,
            self.openings,
            Pace(),
            upkeep,
            self.lock,
        )
        subscribers: tuple[Subscriber, ...] = (
            # Requests wait for the first three, and workers for the fourth.
            self.waiters,
            self.history,
            self.topics,
            self.streams,
            # Nobody waits for the rest.
            self.pulse,
            self.flows,
            self.trends.step,
            self.stats,
            self.tallies,
            self.changes,
            self.events,
            self.viewers,
        )
        self._loop = TickLoop(
            *(store, clock, self.inbox, self.streams, guides, options.durability, subscribers),
            self.scheduler.reschedule,
            self.mint,
        )
        self.failure = self._loop.failure
        """Set when the store has failed: nothing can be stored any more."""
        self._task: asyncio.Task[None] | None = None
        store.when_unreadable = self.set_aside

    def start(self) -> None:
        """Begin to tick."""
        self.steps.start()
        self.streams.bury_died()
        self._task = asyncio.create_task(self._loop.run(), name="zq-tick")
        self.scheduler.start()
        self.trends.start()

    async def stop(self) -> None:
        """Run the commands that wait, then end. Streams should be closed by then."""
        await self.scheduler.stop()
        await self.steps.stop()
        if not self.failure.done():
            self.trends.close()
        self._loop.stop()
        if self._task is not None:
            await self._task

    def let_go(self) -> None:
        """End every wait and every subscription: streams complete their responses."""
        self.streams.end_all()
        self.waiters.close()
        self.events.close()
        self.viewers.close()
        self.history.close()
        self.topics.close()

    async def set_aside(self, source: str, keys: Sequence[object]) -> None:
        """Set aside the unreadable rows among these rows of a table."""
        if not self.failure.done():
            await self.inbox.submit(SetAside(source, keys))
