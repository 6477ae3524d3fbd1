"""The verbs about lanes, and what is known of how they go."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.features.forward.commands import DropLane, PauseLane, PutLane
from zq.features.forward.errors import LaneNotFound
from zq.features.forward.model import (
    ALL_KEYS,
    ForwardLane,
    LaneRule,
    backlog_of,
    check_lane,
    check_rule,
    new_epoch,
)
from zq.features.forward.store import NO_JOBS, LaneReads, UnderWay
from zq.model.clock import Clock
from zq.model.ids import minted_at
from zq.model.lifecycle import Status
from zq.service.services import Services
from zq.store.api import Store

BYTES_LAST_S = 5.0
"""The bytes that wait are counted again after this time, at the earliest."""

MOST_OF_THE_TIME = 20
"""Counting the bytes of lanes may take 1/20 of the time."""


class LaneProgress(msgspec.Struct):
    """How a lane goes since the start of the server. Times are milliseconds of wall time."""

    state: str = "starting"
    """`starting`, `sending`, `idle`, `waiting` (for the hub), `paused`, `pulled`, or `elsewhere` if
    another of the servers that share the store carries it."""
    arrived: int = 0
    refused: int = 0
    dropped: int = 0
    sent_bytes: int = 0
    succeeded_at: int | None = None
    error: str | None = None
    """Why nothing arrives at present."""
    error_code: str | None = None
    failure: str | None = None
    """The last error, also after a success."""
    failed_at: int | None = None
    retry_at: int | None = None
    """When a lane tries again that waits after an error."""


class _Waiting(NamedTuple):
    """So many jobs of a queue, and since when the oldest one waits."""

    jobs: int
    oldest_at: int | None


class _Size(NamedTuple):
    """Bytes that were counted, and until when they are good enough, in monotonic seconds."""

    bytes: int
    until: float


class LaneStatus(NamedTuple):
    """A lane with what waits on it, `under_way` of it with numbers, and how it goes."""

    lane: ForwardLane
    progress: LaneProgress
    waiting: int
    under_way: int
    bytes: int
    """The bytes of the payloads that wait, as they were counted last."""
    oldest_at: int | None
    """When the oldest job that waits has become ready, or was stored if it is under way."""
    queues: Mapping[str, int]
    """The ready jobs by queue."""

    def lag_ms(self, now: int) -> int | None:
        """The age of the oldest job that waits; None if there is none."""
        return None if self.oldest_at is None else max(now - self.oldest_at, 0)


class Lanes:
    """The lanes of a server. Whoever may manage all queues may manage them."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The lanes of a server."""
        return cls(services.store, services.clock, services.engine.inbox)

    def __init__(self, store: Store, clock: Clock, inbox: Inbox) -> None:
        self._reads = store.reads
        self._lanes = store.reads.of(LaneReads)
        self._identity = store.at_start.epoch
        self._store = store
        self._carries = True
        self.instance = new_epoch(self._identity)
        """Names this server to hubs, for as long as it carries lanes without a pause."""
        self._clock = clock
        self._inbox = inbox
        self._progress: dict[str, LaneProgress] = {}
        self._sizes: dict[str, _Size] = {}
        self.in_use = False
        """True while a lane has an address. `/health` asks it first."""
        self.when_changed: list[Callable[[], object]] = []
        """Called when a lane was made, changed or dropped."""
        self.take_overs: set[str] = set()
        """Lanes that may take the place of another server at their hub, once."""

    def progress(self, name: str) -> LaneProgress:
        """How a lane goes. Whoever carries its jobs keeps it up to date."""
        if not self._store.leads:
            return LaneProgress("elsewhere")
        return self._progress.setdefault(name, LaneProgress())

    def errors(self) -> dict[str, str]:
        """Why nothing arrives, of each lane that fails."""
        return {name: each.error for name, each in self._progress.items() if each.error}

    async def all(self) -> list[ForwardLane]:
        """All lanes by name."""
        return await self._lanes.lanes()

    async def carried(self) -> list[ForwardLane]:
        """The lanes that this server carries: all, or none if another that shares the store does.

        Whenever it begins, it is another instance: hubs may know a later one of another server.
        """
        leads = self._store.leads
        if leads and not self._carries:
            self.instance = new_epoch(self._identity)
        if not leads:
            self._progress.clear()
        self._carries = leads
        return await self.all() if leads else []

    async def put(self, name: str, rule: LaneRule, *, declared: bool = False) -> ForwardLane:
        """Make a lane, or change its rule.

        Raises `LanesMeet` or `TooManyLanes`.
        """
        command = PutLane(name, check_rule(rule), new_epoch(self._identity), declared)
        return self._changed(await self._inbox.ask(command))

    async def pause(self, name: str, *, paused: bool, take_over: bool = False) -> ForwardLane:
        """Stop a lane, or let it go on. Raises `LaneNotFound`.

        With `take_over` it may take the place of another server of its name, once.
        """
        if take_over:
            self.take_overs |= {name, backlog_of(name)}
        return self._changed(await self._inbox.ask(PauseLane(name, paused)))

    async def drop(self, name: str) -> None:
        """Forget a lane, and give its jobs to the workers here. Raises `LaneNotFound`."""
        await self._inbox.ask(DropLane(check_lane(name)))
        for gone in (name, backlog_of(name)):
            self._progress.pop(gone, None)
        self._tell()

    async def status_of(self, name: str) -> LaneStatus:
        """A lane, and what it is doing. Raises `LaneNotFound`."""
        for found in await self.status():
            if found.lane.name == name:
                return found
        raise LaneNotFound(name)

    async def status(self) -> list[LaneStatus]:
        """All lanes with an address by name, with what waits on them."""
        lanes = [lane for lane in await self.all() if lane.rule.url is not None]
        if not lanes:
            return []
        now = self._clock.now_ms()
        counts = await self._reads.counts(now)
        ready = {queue: n for (queue, status), n in counts.items() if n and status is Status.READY}
        oldest = await self._reads.oldest_ready(list(ready))
        under_way = await self._lanes.under_way()
        found: list[LaneStatus] = []
        for lane in lanes:
            waiting = await self._waiting(lane, ready, oldest, now)
            queues = {queue: some.jobs for queue, some in waiting.items() if some.jobs}
            times = [some.oldest_at for some in waiting.values() if some.oldest_at is not None]
            sent = under_way.get(lane.id, UnderWay(0, None))
            if sent.oldest is not None:
                times.append(minted_at(sent.oldest))
            jobs = sum(queues.values()) + sent.jobs
            size = await self._bytes(lane, counts, now) if jobs else 0
            progress, oldest_at = self.progress(lane.name), min(times, default=None)
            found.append(LaneStatus(lane, progress, jobs, sent.jobs, size, oldest_at, queues))
        return found

    async def _waiting(
        self, lane: ForwardLane, ready: Mapping[str, int], oldest: Mapping[str, int], now: int
    ) -> dict[str, _Waiting]:
        """What waits in the queues of a lane and has no number.

        Jobs in lines count for the backlog, if a lane has one.
        """
        patterns = lane.rule.patterns
        all = {queue: _Waiting(n, oldest.get(queue)) for queue, n in ready.items()}
        all = {queue: some for queue, some in all.items() if patterns.covers(queue)}
        span = lane.span(now)
        if not all or span == ALL_KEYS:
            return all
        edge = span.stop if lane.is_backlog else span.start
        new = await self._lanes.new_jobs(list(all), edge)
        if not lane.is_backlog:
            return {queue: _Waiting(n, minted_at(key)) for queue, (n, key) in new.items()}
        left = {queue: some.jobs - new.get(queue, NO_JOBS).jobs for queue, some in all.items()}
        return {queue: all[queue]._replace(jobs=n) for queue, n in left.items() if n > 0}

    async def _bytes(
        self, lane: ForwardLane, counts: Mapping[tuple[str, Status], int], now: int
    ) -> int:
        """The bytes of the payloads that wait. They are not counted again all the time."""
        began = self._clock.monotonic()
        known = self._sizes.get(lane.name)
        if known is not None and began < known.until:
            return known.bytes
        patterns = lane.rule.patterns
        queues = {queue for (queue, _), n in counts.items() if n and patterns.covers(queue)}
        size = await self._lanes.waiting_bytes(sorted(queues), lane.span(now))
        ended = self._clock.monotonic()
        lasts = max(BYTES_LAST_S, MOST_OF_THE_TIME * (ended - began))
        self._sizes[lane.name] = _Size(size, ended + lasts)
        return size

    def _changed(self, lane: ForwardLane) -> ForwardLane:
        self._tell()
        return lane

    def _tell(self) -> None:
        for tell in self.when_changed:
            tell()
