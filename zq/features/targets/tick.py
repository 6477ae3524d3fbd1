"""New jobs of queues with targets become one job for each, and targets come and go.

A queue gets a target with all that waits, or loses one with its jobs, as a whole in one
transaction. So a new job and the change can come in any order, and each target gets each job once.
Several transactions could not tell which jobs a target lacks: meanwhile other targets finish some
of them, and a job is not always stored after those with lower ids. Of a target that goes, the
caller deletes most jobs before.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TypeVar, get_args

import msgspec

from zq.features.batches.model_jobs import batch_of
from zq.features.targets.model import (
    AddTarget,
    GroupInFlight,
    RemoveTarget,
    TargetExists,
    TargetNotFound,
)
from zq.model.checksums import fits
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.errors import (
    Conflict,
    InvalidRequest,
    QueueFull,
    QueueOutOfReach,
    Unprocessable,
    ZqError,
)
from zq.model.events import EventType
from zq.model.job import INLINE_PAYLOAD, NO_EXTRAS, Brief, JobRecord, NewJob, without_former_key
from zq.model.lifecycle import Status
from zq.model.parts import in_parts
from zq.model.patching import Patch
from zq.model.settings import NO_SETTINGS, QueueSettings, checked, fixed
from zq.model.sharing import maker
from zq.model.unique import KeySpace, OnConflict
from zq.store.api import Sliced, exhaust
from zq.store.snapshot import PAGE_BYTES
from zq.tick.change import patch_jobs
from zq.tick.depths import depths
from zq.tick.entering import narrow_keys, narrow_keys_in_place
from zq.tick.fitting import ComingPayloads, misfits
from zq.tick.hooks import FanOut, Hooks, Options
from zq.tick.intake import Intake
from zq.tick.moves import remove
from zq.tick.phases import Phase, Stage
from zq.tick.settings import put_settings
from zq.tick.work import UnitOfWork

T = TypeVar("T")


def enqueue_for_targets(work: UnitOfWork, commands: Sequence[Enqueue]) -> Sliced[list[object]]:
    """Store new jobs while some queues have targets. The replies are as for all new jobs."""
    wide: list[Enqueue | ZqError] = []
    for command in commands:
        spread = yield from _spread(work, command)
        wide.append(spread)
    intake = Intake(work, [command for command in wide if isinstance(command, Enqueue)])
    replies: list[object] = []
    for command, each in zip(commands, wide, strict=True):
        if not isinstance(each, Enqueue):
            replies.append(each)
            continue
        reply = yield from intake.take(each)
        if each is not command and isinstance(reply, EnqueueResult):
            _tell_of_twins(work, command, each, reply)
            reply = _gathered(command, each, reply)
        replies.append(reply)
    yield from intake.store()
    return replies


def _spread(work: UnitOfWork, command: Enqueue) -> Sliced[Enqueue | ZqError]:
    """The command with the jobs that its jobs become.

    A job keeps its place and its key for its first target. Its twins for other targets come behind
    all jobs of the command, with keys of their own. Defaults are fixed for the queue that the job
    named. A unique key belongs to each target by itself.
    """
    fanning = work.rulebook.fanning
    if not any(job.queue in fanning for job in command.jobs):
        return command
    if (misfit := (yield from refusal(work, command.jobs))) is not None:
        return misfit
    firsts: list[NewJob] = []
    twins: list[NewJob] = []
    for key, job in zip(command.keys, command.jobs, strict=True):
        targets = fanning.get(job.queue)
        if targets is None:
            firsts.append(job)
            continue
        if command.defaults is not None:
            job = fixed(job, work.settings_of(job.queue), command.defaults)
        extras = msgspec.structs.replace(job.extras or NO_EXTRAS, twin_of=key)
        first, *others = targets
        firsts.append(msgspec.structs.replace(job, queue=first, unique_in=KeySpace.QUEUE))
        twins += [
            msgspec.structs.replace(job, queue=other, unique_in=KeySpace.QUEUE, extras=extras)
            for other in others
        ]
    keys = [*command.keys, *work.new_keys(len(twins))]
    return msgspec.structs.replace(command, jobs=firsts + twins, keys=keys)


def refusal(
    work: UnitOfWork, jobs: Sequence[NewJob], place: str = "jobs"
) -> Sliced[ZqError | None]:
    """Why new jobs may not come to all targets of their queues. A door knows its own queue alone.

    If there are several, the error names one by its `place`.
    """
    fanning = work.rulebook.fanning
    named = {job.queue for job in jobs}
    payloads = ComingPayloads(work, {to for queue in named for to in fanning.get(queue, ())})
    for index, job in enumerate(jobs):
        targets = fanning.get(job.queue, ())
        why: ZqError | None = None
        if targets and batch_of(job) is not None:
            why = Unprocessable(
                f"the queue {job.queue!r} has targets, so its jobs cannot have a batch: enqueue the"
                " job into one of the targets, or leave the batch out"
            )
        for target in targets:
            if why is None and target != job.queue:
                why = yield from payloads.refusal(target, job.payload)
        if why is not None:
            return why if len(jobs) == 1 else why.about(index, place)
    return None


def _tell_of_twins(
    work: UnitOfWork, command: Enqueue, spread: Enqueue, result: EnqueueResult
) -> None:
    """Note the news of the twins. That of the first ones follows from the command's result."""
    known = result.known
    twins = [
        Brief(key, job.queue, None, Status.READY, unique_key=job.unique_key)
        for index, (key, job) in enumerate(zip(spread.keys, spread.jobs, strict=True))
        if index >= len(command.jobs) and index not in known
    ]
    if twins:
        work.effects.news.append((EventType.ENQUEUED, twins))


def _gathered(command: Enqueue, spread: Enqueue, result: EnqueueResult) -> EnqueueResult:
    """The result of the command that was sent, from that of the one which was carried out.

    It tells of the first target of each job.
    """
    count = len(command.jobs)
    renamed = {
        index: stored.queue
        for index, (sent, stored) in enumerate(zip(command.jobs, spread.jobs, strict=False))
        if sent.queue != stored.queue
    }
    return EnqueueResult(
        _below(result.owners, count),
        {index for index in result.replaced if index < count},
        _below(result.gone, count),
        _below(result.expiries, count),
        _below(result.folded, count),
        renamed,
    )


def _below(values: Mapping[int, T], count: int) -> dict[int, T]:
    return {index: value for index, value in values.items() if index < count}


_OWN = ("queue", "payload", "ready_at", "on_conflict", "extras", "ttl_ms", "unique_in")
_new = maker(JobRecord, NewJob, *_OWN)


def store_twins(work: UnitOfWork, target: str, jobs: Sequence[JobRecord]) -> None:
    """Store a twin of each stored job in a target. What may refuse new jobs refuses none."""
    for some in in_parts(jobs, attrgetter("payload_size"), PAGE_BYTES):
        _store(work, target, some)


def first_of(job: JobRecord) -> int:
    """The key of the first of a job's twins, which may be the job itself."""
    known = None if job.extras is None else job.extras.twin_of
    return job.key if known is None else known


def _store(work: UnitOfWork, target: str, jobs: Sequence[JobRecord]) -> None:
    beside = [job.key for job in jobs if job.payload_size > INLINE_PAYLOAD]
    bodies: dict[int, str] = {}
    if beside:
        rows = work.tx.table("read_payloads", keys=beside)
        bodies = {key: body for key, body, stored in rows if fits(body, stored)}
        if gone := [key for key in beside if key not in bodies]:
            work.tx.set_aside("jobs", gone)
            jobs = [job for job in jobs if job.key not in set(gone)]
    twins = [_twin_of(work, job, bodies.get(job.key, job.payload), target) for job in jobs]
    size = sum(job.payload_size for job in jobs)
    new = Enqueue(keys=work.new_keys(len(twins)), jobs=twins, now=work.now, size=size)
    work.effects.brought.append((new, exhaust(_taken(work, new))))


def _taken(work: UnitOfWork, twins: Enqueue) -> Sliced[EnqueueResult]:
    """Store twins in the target that they name, also if that is a queue with targets."""
    intake = Intake(work, [twins])
    result = yield from intake.take(twins, refusable=False)
    assert isinstance(result, EnqueueResult), "nothing refuses copies"
    yield from intake.store()
    return result


def _twin_of(work: UnitOfWork, job: JobRecord, payload: str | None, target: str) -> NewJob:
    """A new job with the limits of a stored one. Its attempts begin anew."""
    waits = job.status is Status.SCHEDULED and not job.attempts
    ready_at = job.ready_at if job.due_at is None else job.due_at - (work.steady - work.now)
    ttl_ms = job.ttl_ms
    if job.expires_at is not None:
        start = work.steady if job.due_at is None or not waits else max(job.due_at, work.steady)
        ttl_ms = max(job.expires_at - start, 1)
    return _new(
        without_former_key(job),
        queue=target,
        payload=payload or "null",
        ready_at=ready_at if waits else None,
        on_conflict=OnConflict.REPLACE_CONTENT,
        extras=msgspec.structs.replace(job.extras or NO_EXTRAS, twin_of=first_of(job)),
        ttl_ms=ttl_ms,
        unique_in=KeySpace.QUEUE,
    )


AnyTargetChange = AddTarget | RemoveTarget

LOOKED_AT = 20_000
"""How many jobs are looked at before other tasks may have a turn."""

SLICE = 256
"""How many jobs are moved, stored or deleted before that."""

WAITING = (Status.SCHEDULED, Status.READY)
UNFINISHED = (*WAITING, Status.IN_FLIGHT)

Handle = Callable[[Sequence[int]], Sliced[int]]
"""Does something with the jobs of these keys. Returns with how many."""


def change_targets(work: UnitOfWork, commands: Sequence[AnyTargetChange]) -> Sliced[list[object]]:
    """Give queues targets and take them away, one command after the other."""
    replies: list[object] = []
    for command in commands:
        try:
            if isinstance(command, AddTarget):
                reply: object = yield from _add(work, command)
            else:
                reply = yield from _remove(work, command)
        except (Conflict, InvalidRequest, QueueFull, QueueOutOfReach, TargetNotFound) as refusal:
            reply = refusal
        replies.append(reply)
    return replies


def _add(work: UnitOfWork, command: AddTarget) -> Sliced[int]:
    queue, target = command.queue, command.target
    targets = work.settings_of(queue).fan_out or ()
    # It gets what lies in all of them.
    command.reach.require(targets)
    if target in targets:
        raise TargetExists(queue, target)
    new = _new_settings(work, queue, target)
    twins = (yield from _unfinished(work, targets)) if targets else {}
    bound = (new.get(target) or work.settings_of(target)).max_depth
    if bound is not None:
        coming = len(twins) if targets else (yield from _coming(work, queue, target))
        if coming and depths(work, {target})[target] + coming > bound:
            raise QueueFull(target, bound)
    if not targets and target != queue:
        yield from _require_no_running_head(work, queue)
    for name, own in new.items():
        put_settings(work, name, own)
    for other in targets or (queue,):
        # There may be as many names as jobs.
        yield partial(work.tx.write, "share_names", queue=other, target=target, now=work.steady)
    if target == queue:
        yield from _each(work, [queue], tuple(Status), _narrower(work))
    if targets:
        return (yield from _store_in_order(work, target, twins))
    if target == queue:
        return 0
    return (yield from _each(work, [queue], WAITING, _mover(work, target)))


def _new_settings(work: UnitOfWork, queue: str, target: str) -> dict[str, QueueSettings]:
    """The settings of a queue with a further target, and those of the target if it has none.

    Raises what says that they are not legal, before any of them is written.
    """
    settings = work.settings_of(queue)
    targets = (*(settings.fan_out or ()), target)
    new = {queue: checked(msgspec.structs.replace(settings, fan_out=targets))}
    if target != queue and work.settings_of(target) == NO_SETTINGS:
        new[target] = msgspec.structs.replace(settings, fan_out=None)
    book = work.rulebook
    for name, own in new.items():
        book = book.with_settings(name, own)
    return new


def _require_no_running_head(work: UnitOfWork, queue: str) -> Sliced[None]:
    """Raise `GroupInFlight` if a job of a group is in flight in a queue.

    It stays there, and all that follows it goes to the target, where nothing would hold it back.
    """
    running = work.tx.keys("read_all_in_flight")
    for start in range(0, len(running), SLICE):
        for job in work.tx.briefs("read_briefs", keys=running[start : start + SLICE]):
            if job.queue == queue and job.group is not None:
                raise GroupInFlight(queue, job.group)
        yield None


def _coming(work: UnitOfWork, queue: str, target: str) -> Sliced[int]:
    """How many jobs the first target of a queue gets."""
    return 0 if target == queue else (yield from _each(work, [queue], WAITING, _counted))


def _counted(keys: Sequence[int]) -> Sliced[int]:
    yield None
    return len(keys)


def _remove(work: UnitOfWork, command: RemoveTarget) -> Sliced[int]:
    queue, target = command.queue, command.target
    settings = work.settings_of(queue)
    targets = settings.fan_out or ()
    if target not in targets:
        raise TargetNotFound(queue, target)
    fewer = tuple(other for other in targets if other != target)
    put_settings(work, queue, checked(msgspec.structs.replace(settings, fan_out=fewer)))
    if target == queue:
        return 0
    put_settings(work, target, NO_SETTINGS)

    def delete(keys: Sequence[int]) -> Sliced[int]:
        jobs = work.tx.briefs("read_briefs", keys=keys)
        remove(work, jobs, revokes=True)
        yield None
        return len(jobs)

    return (yield from _each(work, [target], tuple(Status), delete))


def _each(
    work: UnitOfWork, queues: Sequence[str], statuses: Sequence[Status], handle: Handle
) -> Sliced[int]:
    """Handle the jobs of some queues in some states, in slices. Returns how many were handled.

    Jobs that are stored meanwhile have higher keys, and are left out.
    """
    after, handled = 0, 0
    (upto,) = work.new_keys(1)
    while True:
        ((last, keys),) = work.tx.table(
            "look_behind",
            after=after,
            upto=upto,
            limit=LOOKED_AT,
            queues=list(queues),
            statuses=[int(status) for status in statuses],
        )
        if last is None:
            return handled
        after = last
        for start in range(0, len(keys), SLICE):
            handled += yield from handle(keys[start : start + SLICE])
            yield None
        yield None


def _narrower(work: UnitOfWork) -> Handle:
    """Has the keys of jobs count in their queue alone, as new ones do once it is a target."""

    def narrow(keys: Sequence[int]) -> Sliced[int]:
        narrow_keys_in_place(work, work.tx.jobs("read_jobs", keys=keys))
        yield None
        return len(keys)

    return narrow


def _mover(work: UnitOfWork, target: str) -> Handle:
    def move(keys: Sequence[int]) -> Sliced[int]:
        fitting = yield from _fitting(work, target, keys)
        moved = patch_jobs(work, fitting, Patch(queue=target))
        narrow_keys(work, moved)
        return len(moved)

    return move


def _unfinished(work: UnitOfWork, targets: Sequence[str]) -> Sliced[dict[int, int]]:
    """The jobs that some target has not finished: one of the twins of each, by the first one."""
    twins: dict[int, int] = {}

    def note(keys: Sequence[int]) -> Sliced[int]:
        for job in work.tx.jobs("read_jobs", keys=keys):
            twins.setdefault(first_of(job), job.key)
        yield None
        return len(keys)

    yield from _each(work, targets, UNFINISHED, note)
    return twins


def _store_in_order(work: UnitOfWork, target: str, twins: Mapping[int, int]) -> Sliced[int]:
    """Store twins of jobs in the order in which these came. Returns how many.

    The jobs are those of `_unfinished`. Their own keys do not tell their order: a twin for a later
    target comes behind all first ones of its transaction.
    """
    keys = [twins[first] for first in sorted(twins)]
    stored = 0
    for start in range(0, len(keys), SLICE):
        jobs = yield from _fitting(work, target, keys[start : start + SLICE])
        store_twins(work, target, sorted(jobs, key=first_of))
        stored += len(jobs)
        yield None
    return stored


def _fitting(work: UnitOfWork, target: str, keys: Sequence[int]) -> Sliced[list[JobRecord]]:
    """The jobs whose payloads may come to a target. Others stay without it."""
    jobs = work.tx.jobs("read_jobs", keys=keys)
    unfit = yield from misfits(work, [(job, (target,)) for job in jobs], all_now=True)
    return [job for job in jobs if job.key not in unfit]


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """The targets' part in a tick: jobs that come to a queue with targets go to these."""
    return Hooks(fan_out=FanOut(enqueue_for_targets, store_twins, refusal))


PHASES = (Phase(Stage.CHANGE, change_targets, get_args(AnyTargetChange)),)
