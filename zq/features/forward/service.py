"""The verbs about lanes, and what is known of how they go.

A transaction that stores new jobs holds lanes to their bounds on bytes: see
`zq.features.forward.tick_lanes`. Here lanes that drop their oldest jobs are looked at again and
again: time passes, jobs come back without being new, and a rule may have another bound than before.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.engine.turns import end_task
from zq.features.forward.commands import DeclareLanes, DropLane, PauseLane, PutLane, TrimLane
from zq.features.forward.engine import DropBell
from zq.features.forward.model import (
    ALL_KEYS,
    ForwardLane,
    LaneFull,
    LaneNotFound,
    LaneRule,
    backlog_of,
    check_lane,
    check_rule,
    new_epoch,
)
from zq.features.forward.service_ages import AgeMark, LaneAges
from zq.features.forward.store import NO_JOBS, LaneReads, UnderWay
from zq.features.history.engine import HistoryReaders
from zq.features.producers.model import EpochEnd
from zq.model.clock import Clock
from zq.model.commands import WriteNote
from zq.model.errors import DiskFailed, ZqError
from zq.model.ids import minted_at
from zq.model.lifecycle import Status
from zq.model.queue_patterns import QueuePatterns
from zq.service.services import RunningService, Services
from zq.store.api import Store
from zq.store.errors import StoreError

BYTES_LAST_S = 5.0
"""The bytes that wait are counted again after this time, at the earliest."""

MOST_OF_THE_TIME = 20
"""Counting the bytes of lanes may take 1/20 of the time."""


AGREED = frozenset({"sending", "idle"})
"""The states of a lane that has agreed with its hub: it need not take the place of another one."""


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
    """The number of a queue's waiting jobs, and since when the oldest one waits."""

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

    async def put(self, name: str, rule: LaneRule) -> ForwardLane:
        """Make a lane, or change its rule.

        Raises `LanesMeet` or `TooManyLanes`.
        """
        command = PutLane(name, check_rule(rule), new_epoch(self._identity))
        return self._changed(await self._inbox.ask(command))

    async def declare(self, rules: Mapping[str, LaneRule]) -> None:
        """Make these the declared lanes, and drop those that were declared before.

        Raises `LanesMeet` or `TooManyLanes`.
        """
        if not rules and not any(lane.declared for lane in await self.all()):
            # Most servers declare none, and their start writes nothing.
            return
        lanes = [
            PutLane(name, rule, new_epoch(self._identity), declared=True)
            for name, rule in rules.items()
        ]
        await self._inbox.ask(DeclareLanes(lanes))
        self._tell()

    async def pause(self, name: str, *, paused: bool, take_over: bool = False) -> ForwardLane:
        """Stop a lane, or let it go on. Raises `LaneNotFound`.

        With `take_over` it may take the place of another server of its name, once: when it next
        agrees with its hub.
        """
        lane = await self._inbox.ask(PauseLane(name, paused))
        if take_over:
            there = {each.name for each in await self.all()} & {name, backlog_of(name)}
            self.take_overs |= {each for each in there if self.progress(each).state not in AGREED}
        return self._changed(lane)

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


NOTE = "history epochs"
MOST_EPOCHS = 100
"""How many restores are remembered."""


class HistoryEpochs:
    """The epochs that this database has had, the present one last, with the last numbers of the
    others."""

    @classmethod
    def of(cls, services: Services) -> Self:
        readers = services.engine[HistoryReaders]
        return cls(services.store, services.engine.inbox, readers)

    def __init__(self, store: Store, inbox: Inbox, readers: HistoryReaders) -> None:
        self.present = store.at_start.epoch
        self.former: list[EpochEnd] = []
        self._notes = store.reads
        self._inbox = inbox
        self._readers = readers

    async def learn(self) -> None:
        """Find out at the start whether the database was restored, before it has new records."""
        known = await self._notes.noted(NOTE, list[EpochEnd]) or []
        if not known or known[-1].epoch != self.present:
            if known:
                known[-1] = EpochEnd(known[-1].epoch, self._readers.readable)
            known = [*known[-MOST_EPOCHS:], EpochEnd(self.present, 0)]
            await self._inbox.ask(WriteNote(NOTE, msgspec.json.encode(known).decode()))
        self.former = known[:-1]

    def behind(self, epoch: str, last: int) -> int | None:
        """The last record here that somebody has who has those of an epoch up to a number; None if
        the epoch is none of this database."""
        if epoch == self.present:
            return last
        ends = {end.epoch: end.last for end in self.former}
        return min(ends[epoch], last) if epoch in ends else None


class HubProgress(msgspec.Struct):
    """How the way back from a hub goes, since the start of the server. Times are milliseconds of
    wall time."""

    url: str
    state: str = "starting"
    """`starting`, `listening`, or `waiting` after an error."""
    fetched: int = 0
    refused: int = 0
    records: int = 0
    """So many records of the history have been sent."""
    succeeded_at: int | None = None
    error: str | None = None
    error_code: str | None = None
    failed_at: int | None = None


class Hubs:
    """The hubs of this device by their addresses. The links to them keep their progress here."""

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls()

    def __init__(self) -> None:
        self._found: dict[str, HubProgress] = {}

    def at(self, url: str) -> HubProgress:
        """How it goes with a hub, from now on."""
        return self._found.setdefault(url, HubProgress(url))

    def forget(self, url: str) -> None:
        """No lane names this hub any more."""
        self._found.pop(url, None)

    def all(self) -> list[HubProgress]:
        """All of them by address."""
        return [self._found[url] for url in sorted(self._found)]


log = logging.getLogger("zq.forward")

LOOK_S = 1.0
"""The time between two looks. It is longer where a look takes more than a twentieth of it."""


class LaneBounds(RunningService):
    """Holds lanes to their bounds."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The bounds of a server's lanes. New jobs come to them."""
        engine = services.engine
        bell = engine[DropBell]
        bounds = cls(services.store, services.clock, engine.inbox, services[Lanes], bell)
        services.jobs.checks.append(bounds)
        engine.when_heard.append(bounds._changed.set)
        return bounds

    def __init__(
        self, store: Store, clock: Clock, inbox: Inbox, lanes: Lanes, bell: DropBell
    ) -> None:
        self._reads = store.reads
        self._stored = store.reads.of(LaneReads)
        self._steady = store.steady
        self._ages = LaneAges(store, inbox)
        self._clock = clock
        self._inbox = inbox
        self._lanes = lanes
        self._bell = bell
        self._rules: dict[str, LaneRule] = {}
        """The rules of the lanes that have bounds."""
        self.in_use: dict[str, tuple[QueuePatterns, int]] = {}
        """The lanes whose oldest job waits for too long, with their queues and its age, in
        milliseconds. Every request for new jobs looks at it."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        self._lanes.when_changed.append(self._changed.set)
        await self._follow()
        await self._look()
        self._task = asyncio.create_task(self._run(), name="zq-lane-bounds")

    async def stop(self) -> None:
        await end_task(self._task)

    async def require(self, payloads: Iterable[tuple[str, str]]) -> None:
        """Raise `LaneFull` if a job waits for too long where payloads come, given with queues."""
        queues = {queue for queue, _ in payloads}
        for name, (patterns, age_ms) in self.in_use.items():
            if any(map(patterns.covers, queues)):
                raise LaneFull(name, f"a job waits for {age_ms / 1000:,.0f} s")

    async def _run(self) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                if self._changed.is_set():
                    self._changed.clear()
                    await self._follow()
                await self._look()
            except DiskFailed:
                return
            except (ZqError, StoreError) as error:
                log.warning(f"the rules of lanes are not read: {error}")
            took = self._clock.monotonic() - began
            if self._rules:
                await asyncio.sleep(max(LOOK_S, 20 * took))
            else:
                await self._changed.wait()

    async def _follow(self) -> None:
        """Learn which lanes have bounds."""
        lanes = await self._lanes.all()
        self._rules = {lane.name: lane.rule for lane in lanes if lane.rule.is_bounded}
        self._bell.listens = [self._note] if self._rules else []

    async def _look(self) -> None:
        """Hold all lanes to their bounds. Raises `DiskFailed`; other errors are told."""
        try:
            await self._enforce_bounds()
        except DiskFailed:
            raise
        except (ZqError, StoreError) as error:
            log.warning(f"the bounds of lanes are not looked at: {error}")

    async def _enforce_bounds(self) -> None:
        late: dict[str, tuple[QueuePatterns, int]] = {}
        counts = await self._reads.counts(self._clock.now_ms()) if self._rules else {}
        waiting = {queue for (queue, _), n in counts.items() if n}
        for name, rule in self._rules.items():
            queues = sorted(filter(rule.patterns.covers, waiting))
            try:
                age_ms = await self._enforce(name, rule, queues)
            except DiskFailed:
                raise
            except (ZqError, StoreError) as error:
                log.warning(f"the bounds of lane {name} are not looked at: {error}")
                continue
            if age_ms is not None:
                late[name] = (rule.patterns, age_ms)
        self.in_use = late
        await self._ages.store()

    async def _enforce(self, name: str, rule: LaneRule, queues: Sequence[str]) -> int | None:
        """Drop what a lane has too much of. For one that refuses: since when a job waits too long,
        in milliseconds."""
        passed = await self._passed(name, rule, queues)
        if rule.when_full == "drop_oldest":
            await self._trim(name, rule, queues, passed)
            return None
        return self._steady.read()[1] - passed[0].steady if passed else None

    async def _passed(self, name: str, rule: LaneRule, queues: Sequence[str]) -> list[AgeMark]:
        """The marks since which ready jobs wait that have waited for longer than they may."""
        if rule.max_age_ms is None or not queues:
            return []
        marks = await self._ages.reached(name, rule.max_age_ms)
        return [each for each in marks if await self._stored.has_old(queues, each.key, each.wall)]

    async def _trim(
        self, name: str, rule: LaneRule, queues: Sequence[str], passed: Sequence[AgeMark]
    ) -> None:
        """Drop what is too much or too old on a lane, if there is something."""
        trims = [TrimLane(name, mark.key, mark.wall) for mark in passed]
        most = rule.max_bytes
        if most is not None and await self._stored.waiting_bytes(queues) > most:
            trims.append(TrimLane(name))
        for each in trims:
            while await self._inbox.ask(each):
                pass

    def _note(self, lane: str, dropped: int) -> None:
        log.warning(f"lane {lane} is full: {dropped:,} of the oldest jobs are dropped")
        self._lanes.progress(lane).dropped += dropped
