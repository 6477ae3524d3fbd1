"""The engine: the loop, what it goes by, and everything that memory learns from ticks."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar

from zq.config import Settings
from zq.engine.after_commit import Awaited, Subscriber
from zq.engine.clock_steps import ClockSteps
from zq.engine.delivery.liveness import StreamLiveness
from zq.engine.delivery.streams import Streams
from zq.engine.foreign_lock import ForeignLock
from zq.engine.inbox import Admission, Inbox
from zq.engine.leaving import LeavingQueues
from zq.engine.loop import Alarm, Durability, LoopParts, Openings, Pace, TickLoop, Timetable
from zq.engine.subscribers.events import EventHub
from zq.engine.subscribers.figures import Flows, Pulse, Stats
from zq.engine.subscribers.tallies import QueueChanges, QueueTallies
from zq.engine.subscribers.waiters import Waiters
from zq.engine.turns import Turns
from zq.engine.upkeep import Upkeep
from zq.model.clock import Clock
from zq.model.commands import SetAside
from zq.model.ids import Mint
from zq.rooms import parts
from zq.store.api import Store


class EnginePart(Protocol):
    """A part of the engine that a room has. `engine[ThePart]` makes it at its first use."""

    @classmethod
    def of(cls, engine: "Engine", /) -> Self:
        """Make it from the parts of an engine that it needs."""


class RunningPart:
    """A part that runs while the engine does. A room names its class in `engine.py: RUNNING`."""

    def start(self) -> None:
        """Begin: the loop ticks."""

    async def stop(self) -> None:
        """End. The loop still ticks, unless the store has failed."""


P = TypeVar("P", bound=EnginePart)


class Engine:
    """The engine of one store. Start it in the event loop that it runs in.

    Its own parts are attributes. The parts of rooms are found by their classes, as in
    `engine[TrendMeter]`.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self.store = store
        self.clock = clock
        self.settings = settings
        self.durability = _durability(settings)
        self.inbox = Inbox(settings.max_inbox_jobs)
        self.admission = Admission(
            store, clock, self.inbox, settings.disk_reserve, settings.max_bulk_bytes
        )
        """True if there is room for new jobs."""
        self.streams = Streams(
            settings.global_in_flight_limit,
            store.at_start.claimed,
            self.inbox.give_back,
            store.slot,
            store.at_start.died,
            store.at_start.last_holder,
        )
        self.turns = Turns()
        """The line for work that takes longer than a slice, whichever request it is for."""
        self.liveness = StreamLiveness(clock, self.streams)
        self.waiters = Waiters(clock)
        self.events = EventHub(clock)
        self.mint = Mint(store.at_start.last_key, store.slot)
        """Gives new jobs their keys, whichever door they come through."""
        self.flows = Flows(clock)
        self.stats = Stats()
        self.tallies = QueueTallies()
        self.changes = QueueChanges()
        self.pulse = Pulse(self.stats)
        alarm = Alarm(clock, self.inbox.awake.set)
        self.lock = ForeignLock(clock)
        """The lock of another program that is in the way."""
        upkeep = Upkeep(
            *(store, clock, self.lock, alarm.ring),
            rest_s=settings.upkeep_interval / 1000,
            sync_s=self.durability.sync_s,
        )
        self.admission.when_scarce = upkeep.copy_soon
        self.when_synced = upkeep.when_synced
        self.compact = upkeep.compact
        """Gives all free space back. Its future is done when that has happened."""
        self.openings = Openings(clock)
        """When the rates of queues let the next jobs through."""
        self.leaving = LeavingQueues()
        """The queues whose jobs no worker gets here."""
        rest = settings.reaper_check_interval / 1000
        timetable = Timetable(clock, store.steady, store.at_start.deadlines, rest)

        def hold(wait: bool) -> None:
            timetable.holds_dates = wait
            alarm.ring()

        self.steps = ClockSteps(store.steady, store.reads, self.events, hold)
        """The steps of the wall clock."""
        self.when_let_go: list[Callable[[], object]] = []
        """Called by `let_go`. Whoever has clients wait adds what ends their waits."""
        self.when_heard: list[Callable[[], object]] = [self.waiters.look_again]
        """Called from time to time while other servers may change anything in the store."""
        self.when_found: dict[str, Callable[[Any], object]] = {}
        """Called with what a tick has found for a room, by its name in `TickResult.found`."""
        self._parts: dict[type, Any] = {}
        loop_parts = LoopParts(
            alarm,
            timetable,
            self.openings,
            Pace(),
            upkeep,
            self.lock,
        )
        self._loop = TickLoop(
            store,
            clock,
            self.inbox,
            self.streams,
            loop_parts,
            self.durability,
            self._subscribers(),
            self.mint,
            self.when_found,
        )
        self._running: list[RunningPart] = [
            self[kind] for kinds in parts("engine", "RUNNING", tuple) for kind in kinds
        ]
        self.failure = self._loop.failure
        """Set when the store has failed: nothing can be stored any more."""
        self._task: asyncio.Task[None] | None = None
        store.when_unreadable = self.set_aside
        store.when_away = self._loop.hold_up
        store.when_others = self._loop.hear
        self._loop.when_heard = self.when_heard

    def __getitem__(self, kind: type[P]) -> P:
        """The part of a room. It is made at its first use."""
        if kind not in self._parts:
            # The parts that it needs come before it.
            self._parts[kind] = kind.of(self)
        found: P = self._parts[kind]
        return found

    def _subscribers(self) -> list[Subscriber]:
        """The subscribers to ticks: first those whom somebody waits for."""
        own: list[tuple[Awaited, Subscriber]] = [
            (Awaited.BY_REQUESTS, self.waiters),
            (Awaited.BY_WORKERS, self.streams),
            (Awaited.BY_NOBODY, self.pulse),
            (Awaited.BY_NOBODY, self.flows),
            (Awaited.BY_NOBODY, self.stats),
            (Awaited.BY_NOBODY, self.tallies),
            (Awaited.BY_NOBODY, self.changes),
            (Awaited.BY_NOBODY, self.events),
        ]
        others = [
            (awaited, self[kind])
            for kinds in parts("engine", "SUBSCRIBERS", tuple)
            for awaited, kind in kinds
        ]
        return [each for _, each in sorted([*own, *others], key=lambda pair: pair[0])]

    def start(self) -> None:
        """Begin to tick."""
        self.steps.start()
        self.streams.bury_died()
        self._task = asyncio.create_task(self._loop.run(), name="zq-tick")
        for part in self._running:
            part.start()

    async def stop(self) -> None:
        """Run the commands that wait, then end. Streams should be closed by then.

        Each part of a room ends before those that it needs.
        """
        order = list(self._parts.values())
        for part in sorted(self._running, key=order.index, reverse=True):
            await part.stop()
        await self.steps.stop()
        self._loop.stop()
        if self._task is not None:
            await self._task

    def let_go(self) -> None:
        """End every wait and every subscription: streams complete their responses."""
        self.streams.end_all()
        self.waiters.close()
        self.events.close()
        for end in self.when_let_go:
            end()

    async def set_aside(self, source: str, keys: Sequence[object]) -> None:
        """Set aside the unreadable rows among these rows of a table."""
        if not self.failure.done():
            await self.inbox.submit(SetAside(source, keys))


def _durability(settings: Settings) -> Durability:
    changes = settings.default_commit_mode
    enqueues = settings.enqueue_commit_mode or changes
    if settings.flush_interval:
        return Durability(changes=False, enqueues=False, sync_s=settings.flush_interval / 1000)
    return Durability(changes == "fsync", enqueues == "fsync")
