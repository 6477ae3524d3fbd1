"""The table of lanes, which queues leave by them, and the bounds on what waits there.

Only a transaction knows what waits, so a bound holds at each commit. The bytes are counted once and
followed from then on, by what is stored and what is dropped. What leaves in other ways is not
followed: the number of jobs tells that too many bytes are assumed, and they are counted again
before a job is dropped for it. What is under way is never dropped. Where that alone is over the
bound, new jobs go at once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from zq.features.forward.commands import PauseLane, PutLane, TrimLane
from zq.features.forward.model import (
    LEAVING,
    MOST_LANES,
    ForwardLane,
    LaneFull,
    LaneNotFound,
    LanesMeet,
    TooManyLanes,
    backlog_of,
)
from zq.model.commands import Enqueue
from zq.model.errors import ZqError
from zq.model.ids import MAX_KEY
from zq.model.job import MAX_TIME, Brief
from zq.model.lifecycle import TERMINAL, Move
from zq.model.queue_patterns import NO_QUEUES, QueuePatterns
from zq.store.api import Sliced, Transaction, as_json
from zq.tick.finish import displace
from zq.tick.hooks import Hooks, Jobs
from zq.tick.slices import SLICE_ROWS
from zq.tick.work import UnitOfWork


def lanes_in(tx: Transaction) -> list[ForwardLane]:
    return msgspec.convert(tx.table("lanes"), list[ForwardLane])


def patterns_in(tx: Transaction) -> QueuePatterns:
    """The queues of all lanes."""
    return QueuePatterns.of(queue for lane in lanes_in(tx) for queue in lane.rule.queues)


def lane_named(work: UnitOfWork, name: str) -> ForwardLane:
    """A lane. Raises `LaneNotFound`."""
    text = work.tx.value("lane", lane=name)
    if text is None:
        raise LaneNotFound(name)
    return msgspec.json.decode(text, type=ForwardLane)


def put_lane(work: UnitOfWork, command: PutLane) -> ForwardLane:
    """Make or change a lane, and that of its backlog. Raises `LanesMeet` or `TooManyLanes`."""
    require_apart(work, [command], [])
    store_lane(work, command)
    reread(work)
    return lane_named(work, command.name)


def require_apart(work: UnitOfWork, commands: Sequence[PutLane], gone: Sequence[str]) -> None:
    """Raise `LanesMeet` or `TooManyLanes` if these rules cannot hold together, and beside those of
    other lanes, without the lanes that will be `gone`."""
    names = [*gone, *(command.name for command in commands)]
    named = {*names, *map(backlog_of, names)}
    rules = {lane.name: lane.rule for lane in lanes_in(work.tx) if lane.name not in named}
    for command in commands:
        for other, rule in rules.items():
            if rule.patterns.meets(command.rule.patterns):
                raise LanesMeet(command.name, command.rule.queues, other)
        if len(rules) >= MOST_LANES:
            raise TooManyLanes(MOST_LANES)
        rules[command.name] = command.rule


def store_lane(work: UnitOfWork, command: PutLane) -> None:
    """Write a lane, and that of its backlog.

    What a lane of a backlog has under way is sent to its end, also once a rule has none.
    """
    name = command.name
    had = backlog_lane(work, name)
    rules = {name: command.rule}
    if command.rule.backlog == "behind" or (had is not None and _is_under_way(work, had)):
        rules[backlog_of(name)] = command.rule.of_backlog()
    elif had is not None:
        work.tx.write("drop_lane", id=had.id)
    for lane, rule in rules.items():
        work.tx.write(
            "put_lane",
            lane=lane,
            rule=as_json(rule),
            epoch=command.epoch,
            declared=command.declared,
        )


def _is_under_way(work: UnitOfWork, lane: ForwardLane) -> bool:
    return bool(work.tx.table("batches_of_lane", id=lane.id, upto=lane.next))


def pause_lane(work: UnitOfWork, command: PauseLane) -> ForwardLane:
    """Pause a lane with its backlog, or let it go on. Raises `LaneNotFound`."""
    for lane in filter(None, (lane_named(work, command.name), backlog_lane(work, command.name))):
        work.tx.write("pause_lane", lane=lane.name, paused=command.paused)
    return lane_named(work, command.name)


def backlog_lane(work: UnitOfWork, name: str) -> ForwardLane | None:
    """The lane of the backlog of a lane, if it has one."""
    try:
        found = lane_named(work, backlog_of(name))
    except LaneNotFound:
        return None
    return found if found.is_backlog else None


def drop_lane(work: UnitOfWork, lane: ForwardLane) -> None:
    """Forget a lane and its numbers."""
    work.tx.write("drop_batches", id=lane.id, upto=lane.next)
    work.tx.write("drop_lane", id=lane.id)
    reread(work)


def reread(work: UnitOfWork) -> None:
    """Let the queues of all lanes leave, and no others. Workers may take from the others now."""
    before = work.rulebook.leaving
    work.rulebook = work.rulebook.with_leaving(patterns_in(work.tx))
    work.wanted.add(LEAVING)
    for beginning in before.beginnings:
        for statement in ("ready_queues", "line_queues"):
            work.effects.woken.update(work.tx.names(statement, prefix=beginning))


SLACK = 64
"""Room is made for one part more in so many of the bound, so that not every job has to make some. A
lane that refuses is counted again once one part in so many of its jobs has left."""

COUNTS_AFTER_MS = 60_000
"""The bytes of a lane are counted again after this time, too, if any job has left."""

COUNTED_ROWS = 20_000
"""So many jobs are looked at together."""

MOST_SLICES = 10
"""A transaction drops the jobs of so many slices. The next one goes on."""


class BoundLane:
    """A lane with bounds, and what waits on it."""

    def __init__(self, lane: ForwardLane) -> None:
        self.name = lane.name
        self.patterns = lane.rule.patterns
        self.has_most = lane.rule.max_bytes is not None
        self.most = lane.rule.max_bytes or 0
        """The most bytes that may wait, if it `has_most`."""
        self.refuses = lane.rule.when_full == "refuse"
        self.is_known = False
        """False before the first count, and after what cannot be followed."""
        self.jobs = 0
        self.bytes = 0
        self._counts_at = 0
        """The steady time before which it does not count for a refusal again."""
        self._oldest = 0
        """All ready jobs with lower keys have been dropped, as far as is known."""

    def forget(self) -> None:
        """Count again: what was followed has not been kept."""
        self.is_known, self._oldest = False, 0

    def has_room(self, work: UnitOfWork, size: int) -> Sliced[bool]:
        """True if so many bytes more may wait."""
        if not self.is_known:
            yield from self._count(work)
        elif self.bytes + size > self.most:
            left = self.jobs - sum(self._depths(work).values())
            if left and (left * SLACK >= self.jobs or work.steady >= self._counts_at):
                yield from self._count(work)
        return self.bytes + size <= self.most

    def shed(self, work: UnitOfWork) -> Sliced[int]:
        """Drop the oldest jobs over the bound that are not under way. Return how many."""
        if not self.has_most:
            return 0
        is_over = self.bytes > self.most
        if not self.is_known or (is_over and self.jobs != sum(self._depths(work).values())):
            yield from self._count(work)
        if self.bytes <= self.most:
            return 0
        return (yield from self.drop(work, self.bytes - self.most + self.most // SLACK))

    def drop(
        self, work: UnitOfWork, room: int, upto: int = MAX_KEY, since: int = MAX_TIME
    ) -> Sliced[int]:
        """Drop the oldest jobs up to a key that have been ready since a date, until there is room.

        Return how many.
        """
        dropped = 0
        queues = sorted(self._depths(work))
        for _ in range(MOST_SLICES):
            jobs = self._next(work, queues, room, upto, since) if room > 0 else ()
            if not jobs:
                break
            displace(work, jobs)
            size = sum(job.payload_size for job in jobs)
            room -= size
            self.bytes -= size
            self.jobs -= len(jobs)
            dropped += len(jobs)
            yield None
        if dropped:
            work.effects.displaced.append((self.name, dropped))
        return dropped

    def _next(
        self, work: UnitOfWork, queues: Sequence[str], room: int, upto: int, since: int
    ) -> Sequence[Brief]:
        """The oldest ready jobs of a slice that make room together."""
        asked = {"queues": list(queues), "upto": upto, "since": since, "limit": SLICE_ROWS}
        found = work.tx.table("oldest_of_lane", first=self._oldest, **asked)
        if not found and self._oldest:
            # Jobs that are older may have become ready since.
            self._oldest = 0
            found = work.tx.table("oldest_of_lane", first=0, **asked)
        keys: list[int] = []
        for key, size in found:
            if room <= 0:
                break
            keys.append(key)
            room -= size
        if keys:
            self._oldest = keys[-1]
        return work.tx.briefs("read_briefs", keys=keys) if keys else ()

    def _count(self, work: UnitOfWork) -> Sliced[None]:
        """Count what waits. The event loop does not wait for it."""
        depths = self._depths(work)
        self.jobs, self.bytes = sum(depths.values()), 0
        last: int | None = 0 if self.jobs else None
        asked = {"queues": sorted(depths), "limit": COUNTED_ROWS}
        while last is not None:
            ((size, last),) = yield partial(work.tx.table, "lane_bytes", after=last, **asked)
            self.bytes += size
        self.is_known, self._counts_at = True, work.steady + COUNTS_AFTER_MS

    def _depths(self, work: UnitOfWork) -> dict[str, int]:
        """The unfinished jobs of each queue of the lane, this transaction's changes included."""
        found: Counter[str] = Counter()
        for beginning in self.patterns.beginnings:
            found |= Counter(dict(work.tx.table("lane_depths", prefix=beginning)))
        for (queue, status), n in work.counts.items():
            if status not in TERMINAL:
                found[queue] += n
        return {queue: n for queue, n in found.items() if n and self.patterns.covers(queue)}


class BoundCheck:
    """The new jobs of one phase, and the bounds that they meet."""

    def __init__(self, work: UnitOfWork, lanes: Sequence[BoundLane]) -> None:
        self._work = work
        self._lanes = lanes
        self._coming: Counter[BoundLane] = Counter()
        """The bytes that were admitted in this phase and are not stored yet."""
        self._by_queue: dict[str, BoundLane | None] = {}

    def refusal(self, command: Enqueue) -> Sliced[ZqError | None]:
        sizes: Counter[BoundLane] = Counter()
        for job in command.jobs:
            lane = self._lane_of(job.queue)
            if lane is not None and lane.refuses:
                sizes[lane] += job.payload_size
        for lane, size in sizes.items():
            if not (yield from lane.has_room(self._work, self._coming[lane] + size)):
                waiting = lane.bytes + self._coming[lane]
                return LaneFull(lane.name, f"{waiting:,} of {lane.most:,} bytes wait")
        self._coming += sizes
        return None

    def stored(self, jobs: Iterable[tuple[str, int]], *, sure: bool) -> Sliced[None]:
        """Count jobs that are stored, as queues and bytes, and have the oldest make room for them.

        `sure` is False if payloads of stored jobs were replaced: the bytes that wait are then
        unknown.
        """
        changed: set[BoundLane] = set()
        for queue, size in jobs:
            lane = self._lane_of(queue)
            if lane is not None:
                changed.add(lane)
                lane.jobs += 1
                lane.bytes += size
        if changed and not self._work.tx.is_alone:
            # Servers that share the store count anew what others have added.
            self._work.tx.note_memory()
        for lane in changed if sure else self._lanes:
            lane.is_known &= sure
            if not lane.refuses:
                yield from lane.shed(self._work)

    def lane_named(self, name: str) -> BoundLane | None:
        """The lane of this name, if it has bounds."""
        return next((lane for lane in self._lanes if lane.name == name), None)

    def _lane_of(self, queue: str) -> BoundLane | None:
        if queue not in self._by_queue:
            lanes = [lane for lane in self._lanes if lane.has_most]
            found = (lane for lane in lanes if lane.patterns.covers(queue))
            self._by_queue[queue] = next(found, None)
        return self._by_queue[queue]


class BoundLanes:
    """The lanes with bounds. They are remembered from one transaction to the next."""

    def __init__(self) -> None:
        self._lanes: list[BoundLane] = []
        self._leaving = NO_QUEUES

    @property
    def hooks(self) -> Hooks[UnitOfWork]:
        """Where a transaction asks for them."""
        moves = {
            Move.PATCH: self._follow_moved,
            Move.REVIVE: self._follow_back,
            Move.UNDO: self._follow_back,
        }
        return Hooks(bounds=self.table, moves=moves, undone=self._forget, leaving=patterns_in)

    def table(self, work: UnitOfWork) -> BoundCheck | None:
        """The bounds of the transaction's lanes; None if there are none."""
        leaving = work.rulebook.leaving
        if leaving is not self._leaving:
            # Whatever changes a lane has the patterns read again.
            self._lanes = [BoundLane(lane) for lane in lanes_in(work.tx) if lane.rule.is_bounded]
            self._leaving = leaving
        return BoundCheck(work, self._lanes) if self._lanes else None

    def _follow_moved(self, work: UnitOfWork, jobs: Jobs, after: Jobs | None) -> None:
        if self._lanes and after is not None:
            pairs = zip(jobs, after, strict=True)
            self._doubt({new.queue for old, new in pairs if new.queue != old.queue})

    def _follow_back(self, work: UnitOfWork, jobs: Jobs, after: Jobs | None) -> None:
        if self._lanes:
            self._doubt({job.queue for job in after or jobs})

    def _doubt(self, queues: Iterable[str]) -> None:
        """Count lanes again before they decide anything: jobs have come that are not new."""
        for lane in self._lanes:
            lane.is_known &= not any(map(lane.patterns.covers, queues))

    def _forget(self) -> None:
        for lane in self._lanes:
            lane.forget()


def trim(work: UnitOfWork, command: TrimLane) -> Sliced[int]:
    """Drop the oldest jobs of a lane that drops them: those that are too old, and those over its
    bound.

    Return how many. There may be more.
    """
    table = None if work.hooks.bounds is None else work.hooks.bounds(work)
    assert table is None or isinstance(table, BoundCheck)
    lane = None if table is None else table.lane_named(command.lane)
    if lane is None or lane.refuses:
        return 0
    dropped = 0
    if command.upto:
        dropped = yield from lane.drop(work, MAX_KEY, command.upto, command.since)
    return dropped + (yield from lane.shed(work))
