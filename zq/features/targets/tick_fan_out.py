"""The tick's phase of targets: a queue gets one with all that waits, or loses one with its jobs.

Both are done as a whole in one transaction. So a new job and the change can come in any order, and
each target gets each job once. Several transactions could not tell which jobs a target lacks:
meanwhile other targets finish some of them, and a job is not always stored after those with lower
ids. Of a target that goes, the caller deletes most jobs before.
"""

from collections.abc import Callable, Sequence

import msgspec

from zq.features.targets.errors import TargetExists, TargetNotFound
from zq.features.targets.model import AddTarget, RemoveTarget
from zq.features.targets.tick_twins import first_of, store_twins
from zq.model.errors import Conflict, InvalidRequest, QueueFull
from zq.model.job import JobRecord
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.settings import NO_SETTINGS, checked
from zq.store.api import Sliced
from zq.tick.change import patch_jobs
from zq.tick.depths import depths
from zq.tick.fitting import misfits
from zq.tick.moves import remove
from zq.tick.settings import put_settings
from zq.tick.work import UnitOfWork

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
        change = _add if isinstance(command, AddTarget) else _remove
        try:
            reply: object = yield from change(work, command)
        except (Conflict, InvalidRequest, QueueFull, TargetNotFound) as refusal:
            reply = refusal
        replies.append(reply)
    return replies


def _add(work: UnitOfWork, command: AnyTargetChange) -> Sliced[int]:
    queue, target = command.queue, command.target
    settings = work.settings_of(queue)
    targets = settings.fan_out or ()
    if target in targets:
        raise TargetExists(queue, target)
    new = {queue: checked(msgspec.structs.replace(settings, fan_out=(*targets, target)))}
    if target != queue and work.settings_of(target) == NO_SETTINGS:
        new[target] = msgspec.structs.replace(settings, fan_out=None)
    # Whether they are legal must be known before any of them is written.
    book = work.rulebook
    for name, own in new.items():
        book = book.with_settings(name, own)
    bound = (new.get(target) or work.settings_of(target)).max_depth
    if bound is not None:
        coming = yield from _coming(work, queue, target, targets)
        if coming and depths(work, {target})[target] + coming > bound:
            raise QueueFull(target, bound)
    for name, own in new.items():
        put_settings(work, name, own)
    if targets:
        twins = _Twins(work, target)
        return (yield from _each(work, targets, UNFINISHED, twins.store))
    if target == queue:
        return 0
    return (yield from _each(work, [queue], WAITING, _mover(work, target)))


def _coming(work: UnitOfWork, queue: str, target: str, targets: Sequence[str]) -> Sliced[int]:
    """How many jobs a new target of a queue gets."""
    firsts = set[int]()

    def note(keys: Sequence[int]) -> Sliced[int]:
        firsts.update([first_of(job) for job in work.tx.jobs("read_jobs", keys=keys)])
        yield None
        return 0

    if targets:
        yield from _each(work, targets, UNFINISHED, note)
        return len(firsts)
    return 0 if target == queue else (yield from _each(work, [queue], WAITING, _counted))


def _counted(keys: Sequence[int]) -> Sliced[int]:
    yield None
    return len(keys)


def _remove(work: UnitOfWork, command: AnyTargetChange) -> Sliced[int]:
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


def _mover(work: UnitOfWork, target: str) -> Handle:
    def move(keys: Sequence[int]) -> Sliced[int]:
        fitting = yield from _fitting(work, target, keys)
        return len(patch_jobs(work, fitting, Patch(queue=target)))

    return move


class _Twins:
    """Twins of stored jobs for a new target: one of each, however many targets have one."""

    def __init__(self, work: UnitOfWork, target: str) -> None:
        self._work = work
        self._target = target
        self._known = set[int]()

    def store(self, keys: Sequence[int]) -> Sliced[int]:
        """Store twins of the jobs that have none here yet. Returns how many."""
        new: list[JobRecord] = []
        for job in (yield from _fitting(self._work, self._target, keys)):
            first = first_of(job)
            if first not in self._known:
                self._known.add(first)
                new.append(job)
        store_twins(self._work, self._target, new)
        return len(new)


def _fitting(work: UnitOfWork, target: str, keys: Sequence[int]) -> Sliced[list[JobRecord]]:
    """The jobs whose payloads may come to a target. Others stay without it."""
    jobs = work.tx.jobs("read_jobs", keys=keys)
    unfit = yield from misfits(work, [(job, target) for job in jobs], all_now=True)
    return [job for job in jobs if job.key not in unfit]
