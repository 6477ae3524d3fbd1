"""All services of one store: the core's by name, those of rooms by their classes."""

from typing import Any, Protocol, Self, TypeVar

from zq.config import Settings
from zq.engine.engine import Engine
from zq.engine.jq.filter import JqFilter
from zq.model.ids import codec_of
from zq.model.settings import QueueSettings
from zq.rooms import parts
from zq.service.admin import Admin
from zq.service.jobs import Jobs
from zq.service.listing import Listing
from zq.service.maintenance import Maintenance
from zq.service.queues import QueueCounts, Queues
from zq.service.work import Work


class RoomService(Protocol):
    """A service that a room has. `services[TheService]` makes it at its first use."""

    @classmethod
    def of(cls, services: "Services", /) -> Self:
        """Make it from the services and the parts of the engine that it needs."""


class RunningService:
    """A service that runs while the server does. A room names its class in `service_running.py`.

    It is made at the start, so that it can also give the core's services what they ask of it.
    """

    async def start(self) -> None:
        """Begin: the engine ticks, and there are no requests yet."""

    async def stop(self) -> None:
        """End. The engine still ticks, unless the store has failed."""


S = TypeVar("S", bound=RoomService)


class Services:
    """The core's services and what they are made from as attributes, and `services[Budgets]`."""

    def __init__(self, engine: Engine, filter: JqFilter, inherited: QueueSettings) -> None:
        """`inherited` are the settings that a queue has without its own."""
        self.engine = engine
        self.filter = filter
        self.settings: Settings = engine.settings
        self.store = store = engine.store
        self.clock = clock = engine.clock
        """The clock of the whole server."""
        self.since = clock.now_ms()
        """When the server was started, in milliseconds."""
        self.ids = ids = codec_of(store.at_start.id_suffix, store.at_start.former_suffixes)
        """Converts keys to the ids of this store, and back."""
        self.turns = engine.turns
        """The line in which slices of long work wait."""
        self.events = engine.events
        self.tallies = engine.tallies
        self.counts = counts = QueueCounts(store, clock)
        self.jobs = Jobs(
            store,
            clock,
            ids,
            engine.inbox,
            engine.waiters,
            engine.admission,
            engine.mint,
        )
        self.listing = Listing(store, clock, counts)
        self.work = Work(
            store,
            clock,
            ids,
            engine.inbox,
            engine.streams,
            engine.liveness,
            engine.events,
            max_result=engine.settings.max_result,
        )
        self.queues = Queues(store, clock, engine.inbox, counts, engine.flows, inherited)
        self.admin = Admin(store, clock, ids, engine)
        self.maintenance = Maintenance(store, engine, engine.settings.disk_reserve)
        self._made: dict[type, Any] = {}
        self._running: list[RunningService] = []

    def __getitem__(self, kind: type[S]) -> S:
        """The service of a room. It is made at its first use."""
        if kind not in self._made:
            # The services that it needs come before it.
            self._made[kind] = kind.of(self)
        found: S = self._made[kind]
        return found

    async def start(self) -> None:
        """Begin what runs beside requests."""
        for layer in ("service_running", "peer"):
            for kind in [kind for kinds in parts(layer, "RUNNING", tuple) for kind in kinds]:
                await self[kind].start()
                self._running.append(self[kind])

    async def stop(self) -> None:
        """End what runs beside requests. Each service ends before those that it needs."""
        order = list(self._made.values())
        for service in sorted(self._running, key=order.index, reverse=True):
            await service.stop()
