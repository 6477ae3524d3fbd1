"""The tick's phases of lanes: their rules, and the jobs that get numbers and arrive."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from zq.features.forward.commands import (
    Arrive,
    BeginEpoch,
    DeclareLanes,
    DropLane,
    LaneJobs,
    NameHeir,
    NumberLane,
    PauseLane,
    PutLane,
    ReadLane,
    TrimLane,
)
from zq.features.forward.model import ALL_KEYS, ForwardLane, LaneBatch, LaneRefusal
from zq.features.forward.tick_lanes import (
    BoundLanes,
    backlog_lane,
    drop_lane,
    lane_named,
    lanes_in,
    pause_lane,
    put_lane,
    require_apart,
    reread,
    store_lane,
    trim,
)
from zq.model.commands import Claim, Fail, Return, Succeed
from zq.model.errors import ZqError
from zq.model.job import JobRecord
from zq.model.leasing import Terms
from zq.model.lifecycle import Move, Status
from zq.model.queue_patterns import QueuePatterns
from zq.model.settling import Failure
from zq.store.api import Sliced
from zq.tick.hooks import Hooks, Options
from zq.tick.leases import give_back
from zq.tick.moves import apply
from zq.tick.phases import Phase, Stage
from zq.tick.settle import fail, succeed
from zq.tick.slices import SLICE_ROWS
from zq.tick.work import UnitOfWork

REFUSED = "ForwardRefused"
"""The type of the error of a job that the receiver has refused."""

_TERMS = Terms(endless=True)


def number(work: UnitOfWork, command: NumberLane) -> Sliced[LaneBatch]:
    """Take the next jobs of a lane, and give them the next numbers."""
    lane = lane_named(work, command.lane)
    jobs: list[JobRecord] = []
    for most in _parts(command.most):
        some = _next_jobs(work, lane, most)
        jobs += some
        if len(some) < most:
            break
        yield None
    batch = LaneBatch(lane.next, [job.key for job in jobs], jobs, work.steady)
    if jobs:
        _store(work, lane, batch)
        work.tx.write("note_next", id=lane.id, next=batch.last + 1)
        work.effects.promised = True
    return batch


def read(work: UnitOfWork, lane: ForwardLane) -> Sliced[LaneJobs]:
    """The jobs of a lane that are under way."""
    batches: list[LaneBatch] = []
    for first, keys in _batches(work, lane, lane.next):
        jobs: list[JobRecord] = []
        for some in _slices(keys):
            found = {job.key: job for job in work.tx.jobs("read_jobs", keys=some)}
            jobs += [found[key] for key in some if key in found and _has(lane, found[key])]
            yield None
        batches.append(LaneBatch(first, keys, jobs, work.steady))
    return LaneJobs(lane, batches)


def arrive(work: UnitOfWork, lane: ForwardLane, last: int) -> Sliced[int]:
    """Complete the jobs up to a number. Return how many there were."""
    arrived: list[int] = []
    left: list[LaneBatch] = []
    for first, keys in _batches(work, lane, last):
        count = last + 1 - first
        arrived += keys[:count]
        if keys[count:]:
            left.append(LaneBatch(last + 1, keys[count:], ()))
    if arrived:
        work.effects.promised = True
        work.tx.write("drop_batches", id=lane.id, upto=last)
        for batch in left:
            _store(work, lane, batch)
        for some in _slices(arrived):
            _complete(work, lane, some)
            yield None
        yield from work.regain_keys(SLICE_ROWS)
    return len(arrived)


def begin_epoch(work: UnitOfWork, lane: ForwardLane, command: BeginEpoch) -> Sliced[bool]:
    """Leave the epoch of a lane, and give the jobs that are under way new numbers."""
    yield from arrive(work, lane, command.last)
    if command.refusal is not None:
        yield from _refuse(work, lane, command.refusal)
    under_way = yield from read(work, lane)
    keys = [job.key for batch in under_way.batches for job in batch.jobs]
    work.tx.write("drop_batches", id=lane.id, upto=lane.next)
    if keys:
        _store(work, lane, LaneBatch(1, keys, ()))
    work.tx.write("begin_epoch", id=lane.id, epoch=command.to, next=len(keys) + 1)
    work.effects.promised = True
    return True


def release(work: UnitOfWork, lane: ForwardLane) -> Sliced[None]:
    """Make the jobs ready that are under way."""
    for _, keys in _batches(work, lane, lane.next):
        for some in _slices(keys):
            yield from give_back(work, [Return(lane.holder, some)])
            yield None
    yield from work.regain_keys(SLICE_ROWS)


def _next_jobs(work: UnitOfWork, lane: ForwardLane, most: int) -> list[JobRecord]:
    queues = _queues_with_jobs(work, lane.rule.patterns)
    if not queues:
        return []
    terms, span = {lane.holder: _TERMS}, lane.span(work.now)
    claim = Claim(
        tuple(queues),
        [(lane.holder, most)],
        terms=terms,
        leaves=True,
        span=None if span == ALL_KEYS else span,
        lined=not lane.is_backlog,
    )
    jobs = work.claim(claim)
    groups = list({(job.queue, job.group) for job in jobs if job.group is not None})
    if groups and len(jobs) < most:
        jobs += _followers(work, lane, groups, most - len(jobs))
    return jobs


def _queues_with_jobs(work: UnitOfWork, patterns: QueuePatterns) -> list[str]:
    """The queues of a lane from which jobs may be taken, by one seek each."""
    statements = ["ready_queues"]
    if work.has_lines:
        work.open_heads()
        statements.append("line_queues")
    found = {
        queue
        for statement in statements
        for beginning in patterns.beginnings
        for queue in work.tx.names(statement, prefix=beginning)
    }
    return sorted(filter(patterns.covers, found))


def _followers(
    work: UnitOfWork, lane: ForwardLane, groups: Sequence[tuple[str, str | None]], most: int
) -> list[JobRecord]:
    """Take jobs behind the heads of groups. They arrive behind them, so nobody has to wait.

    A job that waits for a time or a turn keeps those behind it.
    """
    stopped: set[tuple[str, str | None]] = set()
    jobs: list[JobRecord] = []
    for job in sorted(
        work.tx.jobs("read_followers", groups=groups, limit=most), key=lambda job: job.key
    ):
        group = (job.queue, job.group)
        lapsed = job.expires_at is not None and job.expires_at <= work.steady
        if job.status is not Status.READY or job.line is not None or lapsed:
            stopped.add(group)
        elif group not in stopped and len(jobs) < most:
            jobs.append(job)
    _take(work, lane, jobs)
    return jobs


def _take(work: UnitOfWork, lane: ForwardLane, jobs: Sequence[JobRecord]) -> None:
    """Take ready jobs whatever holds them back."""
    leases = [(job.key, lane.holder, None, None) for job in jobs]
    apply(work, Move.TAKE, jobs, to=Status.IN_FLIGHT, after=None, gone=(), leases_from_lines=leases)
    for job in jobs:
        job.status, job.holder, job.line = Status.IN_FLIGHT, lane.holder, None
        job.deliveries += 1
        job.dequeued_at = work.now


def _complete(work: UnitOfWork, lane: ForwardLane, keys: Sequence[int]) -> None:
    """Complete jobs that have arrived. Those that somebody has made ready again have so, too."""
    found = work.tx.jobs("read_jobs", keys=keys)
    ready = [job for job in found if job.status is Status.READY]
    _take(work, lane, ready)
    if there := [job.key for job in found if _has(lane, job)]:
        succeed(work, [Succeed(there)])


def _refuse(work: UnitOfWork, lane: ForwardLane, refusal: LaneRefusal) -> Sliced[None]:
    """Let a job die that the receiver refuses for itself."""
    for first, keys in _batches(work, lane, refusal.number):
        if first <= refusal.number < first + len(keys):
            key = keys[refusal.number - first]
            failure = Failure(refusal.message, f"{REFUSED}: {refusal.code}", None, kill=True)
            yield from fail(work, [Fail(key, failure)])


def _has(lane: ForwardLane, job: JobRecord) -> bool:
    return job.status is Status.IN_FLIGHT and job.holder == lane.holder


def _batches(work: UnitOfWork, lane: ForwardLane, upto: int) -> list[tuple[int, list[int]]]:
    """The batches that begin with a number up to this one: the first number, and the keys."""
    found = work.tx.table("batches_of_lane", id=lane.id, upto=upto)
    return msgspec.convert(found, list[tuple[int, list[int]]])


def _store(work: UnitOfWork, lane: ForwardLane, batch: LaneBatch) -> None:
    work.tx.write("put_batch", id=lane.id, first=batch.first, keys=list(batch.keys))


def _parts(most: int) -> Iterator[int]:
    for start in range(0, most, SLICE_ROWS):
        yield min(SLICE_ROWS, most - start)


def _slices(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), SLICE_ROWS):
        yield keys[start : start + SLICE_ROWS]


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """The queues of lanes leave, and new jobs meet their bounds."""
    return BoundLanes().hooks


def _table(
    work: UnitOfWork, command: PutLane | DeclareLanes | PauseLane | DropLane
) -> Sliced[object]:
    if isinstance(command, PutLane):
        return put_lane(work, command)
    if isinstance(command, DeclareLanes):
        yield from _declare(work, command)
        return None
    if isinstance(command, PauseLane):
        return pause_lane(work, command)
    yield from _drop(work, lane_named(work, command.name))
    return None


def _declare(work: UnitOfWork, command: DeclareLanes) -> Sliced[None]:
    names = {lane.name for lane in command.lanes}
    gone = [
        lane
        for lane in lanes_in(work.tx)
        if lane.declared and lane.name not in names and not lane.is_backlog
    ]
    require_apart(work, command.lanes, [lane.name for lane in gone])
    for lane in gone:
        yield from _drop(work, lane)
    for each in command.lanes:
        store_lane(work, each)
    reread(work)


def _drop(work: UnitOfWork, lane: ForwardLane) -> Sliced[None]:
    for each in filter(None, (lane, backlog_lane(work, lane.name))):
        yield from release(work, each)
        drop_lane(work, each)


def _jobs(
    work: UnitOfWork, command: NumberLane | ReadLane | Arrive | NameHeir | BeginEpoch
) -> Sliced[object]:
    if isinstance(command, NumberLane):
        return (yield from number(work, command))
    if isinstance(command, ReadLane):
        return (yield from read(work, lane_named(work, command.name)))
    lane = lane_named(work, command.lane)
    if isinstance(command, NameHeir):
        work.tx.write("name_heirs", id=lane.id, heirs=lane.heirs_with(command.heir))
        work.effects.promised = True
        return None
    if lane.epoch != command.epoch:
        return 0 if isinstance(command, Arrive) else False
    if isinstance(command, Arrive):
        return (yield from arrive(work, lane, command.last))
    return (yield from begin_epoch(work, lane, command))


def _each(
    do: Callable[[UnitOfWork, Any], Sliced[object]],
) -> Callable[[UnitOfWork, Sequence[Any]], Sliced[list[object]]]:
    """A phase that handles one command after the other. An error of the tree is its reply."""

    def phase(work: UnitOfWork, commands: Sequence[Any]) -> Sliced[list[object]]:
        replies: list[object] = []
        for command in commands:
            try:
                replies.append((yield from do(work, command)))
            except ZqError as error:
                replies.append(error)
        return replies

    return phase


PHASES = (
    Phase(Stage.SETTLE, _each(_jobs), (Arrive, ReadLane, NameHeir, BeginEpoch)),
    Phase(Stage.CHANGE, _each(_table), (PutLane, DeclareLanes, PauseLane, DropLane)),
    Phase(Stage.CHANGE, _each(trim), (TrimLane,)),
    Phase(Stage.RECORD, _each(_jobs), (NumberLane,)),
)
"""Jobs get numbers last, so that one commit can store a job and have it sent."""
