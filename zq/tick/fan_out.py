"""The tick's phase of targets: a queue gets one with all that waits, or loses one with its jobs.

Both are done as a whole in one transaction. So a new job and the change can come in any order, and
each target gets each job once. Several transactions could not tell which jobs a target lacks:
meanwhile other targets finish some of them, and a job is not always stored after those with lower
ids. Of a target that goes, the caller deletes most jobs before.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from zq.model.commands import Enqueue, EnqueueResult
from zq.model.errors import Conflict, InvalidRequest
from zq.model.fan_out import AddTarget, RemoveTarget
from zq.model.job import INLINE_PAYLOAD, NO_EXTRAS, JobRecord, NewJob
from zq.model.lifecycle import Status
from zq.model.patching import Patch
from zq.model.queue_errors import TargetExists, TargetNotFound
from zq.model.settings import NO_SETTINGS, checked
from zq.model.unique import KeySpace, OnConflict
from zq.store.api import PAGE_BYTES, Sliced, exhaust
from zq.tick.change import patch_jobs
from zq.tick.intake import enqueue
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

Handle = Callable[[Sequence[int]], int]
"""Does something with the jobs of these keys. Returns with how many."""


def change_targets(work: UnitOfWork, commands: Sequence[AnyTargetChange]) -> Sliced[list[object]]:
    """Give queues targets and take them away, one command after the other."""
    replies: list[object] = []
    for command in commands:
        change = _add if isinstance(command, AddTarget) else _remove
        try:
            reply: object = yield from change(work, command)
        except (Conflict, InvalidRequest, TargetNotFound) as refusal:
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
    for name, own in new.items():
        put_settings(work, name, own)
    if targets:
        twins = _Twins(work, target)
        return (yield from _each(work, targets, UNFINISHED, twins.store))
    if target == queue:
        return 0
    return (yield from _each(work, [queue], WAITING, _mover(work, target)))


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

    def delete(keys: Sequence[int]) -> int:
        jobs = work.tx.briefs("read_briefs", keys=keys)
        remove(work, jobs, revokes=True)
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
        (last,), keys = work.tx.table(
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
            handled += handle(keys[start : start + SLICE])
            yield None
        yield None


def _mover(work: UnitOfWork, target: str) -> Handle:
    def move(keys: Sequence[int]) -> int:
        jobs = work.tx.jobs("read_jobs", keys=keys)
        return len(patch_jobs(work, jobs, Patch(queue=target)))

    return move


class _Twins:
    """Twins of stored jobs for a new target: one of each, however many targets have one."""

    def __init__(self, work: UnitOfWork, target: str) -> None:
        self._work = work
        self._target = target
        self._known = set[int]()

    def store(self, keys: Sequence[int]) -> int:
        """Store twins of the jobs that have none here yet. Returns how many."""
        new: list[JobRecord] = []
        for job in self._work.tx.jobs("read_jobs", keys=keys):
            first = _first_of(job)
            if first not in self._known:
                self._known.add(first)
                new.append(job)
        return sum(self._store_some(some) for some in _by_bytes(new))

    def _store_some(self, jobs: Sequence[JobRecord]) -> int:
        work = self._work
        beside = [job.key for job in jobs if job.payload_size > INLINE_PAYLOAD]
        bodies = dict(work.tx.table("read_payloads", keys=beside)) if beside else {}
        twins = [self._twin_of(job, bodies.get(job.key, job.payload)) for job in jobs]
        size = sum(job.payload_size for job in jobs)
        keys = work.new_keys(len(twins))
        new = Enqueue(keys=keys, jobs=twins, now=work.now, size=size, over_depth=True)
        (reply,) = exhaust(enqueue(work, [new]))
        assert isinstance(reply, EnqueueResult), reply
        return len(twins)

    def _twin_of(self, job: JobRecord, payload: str | None) -> NewJob:
        """A new job with the limits of a stored one. Its attempts begin anew."""
        now = self._work.now
        waits = job.status is Status.SCHEDULED and not job.attempts
        start = max(job.ready_at, now) if waits else now
        return NewJob(
            self._target,
            job.type,
            payload or "null",
            job.payload_size,
            priority=job.priority,
            ready_at=job.ready_at if waits else None,
            options=job.options,
            unique_key=job.unique_key,
            unique_while=job.unique_while,
            on_conflict=OnConflict.REPLACE_CONTENT,
            group=job.group,
            extras=msgspec.structs.replace(job.extras or NO_EXTRAS, twin_of=_first_of(job)),
            ttl_ms=None if job.expires_at is None else max(job.expires_at - start, 1),
            unique_in=KeySpace.QUEUE,
        )


def _first_of(job: JobRecord) -> int:
    known = None if job.extras is None else job.extras.twin_of
    return job.key if known is None else known


def _by_bytes(jobs: Sequence[JobRecord]) -> Iterator[Sequence[JobRecord]]:
    """The jobs in parts whose payloads fit into memory together."""
    part: list[JobRecord] = []
    size = 0
    for job in jobs:
        if part and size + job.payload_size > PAGE_BYTES:
            yield part
            part, size = [], 0
        part.append(job)
        size += job.payload_size
    if part:
        yield part
