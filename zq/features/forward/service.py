"""The verbs about lanes, and what is known of how they go."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.forward.commands import DropLane, PauseLane, PutLane
from zq.features.forward.errors import LaneNotFound
from zq.features.forward.model import ForwardLane, LaneRule, check_rule, new_epoch
from zq.features.forward.store import LaneReads
from zq.model.clock import Clock
from zq.model.ids import minted_at
from zq.model.lifecycle import Status
from zq.service.services import Services
from zq.store.api import Store


class LaneProgress(msgspec.Struct):
    """How a lane goes since the start of the server. Times are milliseconds of wall time."""

    state: str = "starting"
    """`starting`, `sending`, `idle`, `waiting` (for the hub), `paused` or `pulled`."""
    arrived: int = 0
    refused: int = 0
    dropped: int = 0
    waiting_bytes: int | None = None
    """The bytes of payloads that wait, if the lane has a bound."""
    sent_bytes: int = 0
    succeeded_at: int | None = None
    error: str | None = None
    error_code: str | None = None
    failed_at: int | None = None


class LaneStatus(NamedTuple):
    """A lane with what waits on it, `under_way` of it with numbers, and how it goes."""

    lane: ForwardLane
    progress: LaneProgress
    waiting: int
    under_way: int
    oldest_at: int | None
    """When the oldest job that waits has become ready, or was stored if it is under way."""
    queues: Mapping[str, int]
    """The ready jobs by queue."""


class Lanes:
    """The lanes of a server. Whoever may manage all queues may manage them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The lanes of a server."""
        return cls(services.store, services.clock, services.engine.inbox)

    def __init__(self, store: Store, clock: Clock, inbox: Inbox) -> None:
        self._reads = store.reads
        self._lanes = store.reads.of(LaneReads)
        self._identity = store.epoch
        self._clock = clock
        self._inbox = inbox
        self._progress: dict[str, LaneProgress] = {}
        self.when_changed: list[Callable[[], object]] = []
        """Called when a lane was made, changed or dropped."""
        self.take_overs: set[str] = set()
        """Lanes that may take the place of another server at their hub, once."""

    def progress(self, name: str) -> LaneProgress:
        """How a lane goes. Whoever carries its jobs keeps it up to date."""
        return self._progress.setdefault(name, LaneProgress())

    async def all(self) -> list[ForwardLane]:
        """All lanes by name."""
        return await self._lanes.lanes()

    async def put(self, name: str, rule: LaneRule, *, declared: bool = False) -> ForwardLane:
        """Make a lane, or change its rule. Raises `LanesMeet` or `TooManyLanes`."""
        command = PutLane(name, check_rule(rule), new_epoch(self._identity), declared)
        return self._changed(await self._inbox.ask(command))

    async def pause(self, name: str, *, paused: bool, take_over: bool = False) -> ForwardLane:
        """Stop a lane, or let it go on. Raises `LaneNotFound`.

        With `take_over` it may take the place of another server of its name, once.
        """
        if take_over:
            self.take_overs.add(name)
        return self._changed(await self._inbox.ask(PauseLane(name, paused)))

    async def drop(self, name: str) -> None:
        """Forget a lane, and give its jobs to the workers here. Raises `LaneNotFound`."""
        await self._inbox.ask(DropLane(name))
        self._progress.pop(name, None)
        self._tell()

    async def status_of(self, name: str) -> LaneStatus:
        """One lane. Raises `LaneNotFound`."""
        for found in await self.status():
            if found.lane.name == name:
                return found
        raise LaneNotFound(name)

    async def status(self) -> list[LaneStatus]:
        """All lanes with an address by name, with what waits on them."""
        lanes = [lane for lane in await self.all() if lane.rule.url is not None]
        if not lanes:
            return []
        counts = await self._reads.counts(self._clock.now_ms())
        ready = {queue: n for (queue, status), n in counts.items() if n and status is Status.READY}
        oldest = await self._reads.oldest_ready(list(ready))
        under_way = await self._lanes.under_way()
        found: list[LaneStatus] = []
        for lane in lanes:
            patterns = lane.rule.patterns
            queues = [queue for queue in ready if patterns.covers(queue)]
            times = [oldest[queue] for queue in queues if queue in oldest]
            sent = under_way.get(lane.id)
            if sent is not None and sent.oldest is not None:
                times.append(minted_at(sent.oldest))
            jobs = 0 if sent is None else sent.jobs
            found.append(
                LaneStatus(
                    lane,
                    self.progress(lane.name),
                    sum(ready[queue] for queue in queues) + jobs,
                    jobs,
                    min(times, default=None),
                    {queue: ready[queue] for queue in queues},
                )
            )
        return found

    def _changed(self, lane: ForwardLane) -> ForwardLane:
        self._tell()
        return lane

    def _tell(self) -> None:
        for tell in self.when_changed:
            tell()
