"""The tick's phase of changes: patches and deletions, of one job or of a sweep's slice."""

from collections.abc import Sequence

import msgspec

from zq.model.checksums import with_options
from zq.model.commands import (
    AcknowledgeDamage,
    CancelJob,
    CancelSlice,
    Clear,
    DeleteJob,
    DeleteSlice,
    Entered,
    PatchJob,
    PatchSlice,
    RetainJob,
    Revive,
    ReviveSlice,
    SetAside,
    SetQueue,
    WriteNote,
)
from zq.model.errors import JobNotFound, Unprocessable, ZqError
from zq.model.job import JobRecord
from zq.model.lifecycle import Move, sources
from zq.model.patching import UNSET, Patch, moves_a_running_head, patched, refuse_terminal
from zq.model.settings import ttl_of
from zq.store.api import Sliced
from zq.tick.bury import retry, revive_slice
from zq.tick.entering import QueueEntry, entering, letters_among
from zq.tick.finish import cancel, cancel_slice, retain
from zq.tick.moves import apply, end_leases, remove, revoke
from zq.tick.settings import clear_settings, set_queue
from zq.tick.work import UnitOfWork, note_slice, visible_job

AnyChange = (
    PatchJob
    | PatchSlice
    | DeleteJob
    | DeleteSlice
    | Clear
    | CancelJob
    | CancelSlice
    | RetainJob
    | Revive
    | ReviveSlice
    | SetQueue
    | SetAside
    | AcknowledgeDamage
    | WriteNote
)

SLICES = (PatchSlice, DeleteSlice, CancelSlice, ReviveSlice)
"""The slices of changes of many jobs. Each may say which change it is of."""


def apply_changes(work: UnitOfWork, commands: Sequence[AnyChange]) -> Sliced[list[object]]:
    """Patch and delete, one command after the other."""
    replies: list[object] = []
    for command in commands:
        reply = yield from _change_and_note(work, command)
        replies.append(reply)
    return replies


def _change_and_note(work: UnitOfWork, command: AnyChange) -> Sliced[object]:
    done = yield from _apply_change(work, command)
    if isinstance(command, SLICES) and isinstance(done, int | Entered):
        note_slice(work, command.mark, done if isinstance(done, int) else done.changed)
    elif isinstance(command, CancelJob) and isinstance(done, JobRecord) and done.purge_at:
        note_slice(work, command.mark, 1)
    return done


def _apply_change(work: UnitOfWork, command: AnyChange) -> Sliced[object]:
    match command:
        case PatchJob():
            return (yield from _change(work, command))
        case PatchSlice():
            return (yield from _change_slice(work, command))
        case DeleteJob():
            return _delete(work, command)
        case DeleteSlice():
            return _delete_slice(work, command)
        case Clear():
            return _clear(work, command)
        case CancelJob():
            return cancel(work, command)
        case CancelSlice():
            return cancel_slice(work, command)
        case RetainJob():
            return retain(work, command)
        case Revive():
            return (yield from retry(work, command))
        case ReviveSlice():
            return (yield from revive_slice(work, command))
        case SetQueue():
            return set_queue(work, command)
        case SetAside():
            work.tx.set_aside(command.source, command.keys)
            return None
        case AcknowledgeDamage():
            work.effects.acknowledged = work.tx.run("acknowledge_damage", now=work.now)
            return work.effects.acknowledged
        case WriteNote():
            work.tx.write("write_note", note=command.name, value=command.value)
            return None


def _change(work: UnitOfWork, command: PatchJob) -> Sliced[object]:
    job = visible_job(work, command.key, command.reach)
    if job is None:
        return JobNotFound()
    try:
        refuse_terminal(command.text_id, job.status)
    except ZqError as refusal:
        return refusal
    if moves_a_running_head(job, command.patch):
        return Unprocessable(
            f"cannot move job {command.text_id} to another queue while it is in flight, because"
            f" it belongs to group {job.group!r}: try again when it waits"
        )
    queue, patch = command.patch.queue, command.patch
    if queue is UNSET or queue == job.queue:
        return patch_jobs(work, [job], patch)[0]
    entry = yield from _entry(work, [job], queue)
    return entry.refusal(job, queue) or _move(work, entry, [job], patch, queue)[0]


def _change_slice(work: UnitOfWork, command: PatchSlice) -> Sliced[Entered]:
    """Patch the jobs among the keys that still match the sweep's filter and can be patched."""
    jobs = work.tx.jobs("read_jobs", keys=work.matching(command.keys, command.filter))
    patchable = sources(Move.PATCH)
    chosen = [
        job
        for job in jobs
        if job.status in patchable and not moves_a_running_head(job, command.patch)
    ]
    patch, queue = command.patch, command.patch.queue
    if queue is UNSET:
        return Entered(len(patch_jobs(work, chosen, patch)))
    coming = [job for job in chosen if job.queue != queue]
    stay = patch_jobs(work, [job for job in chosen if job.queue == queue], patch)
    entry = yield from _entry(work, coming, queue)
    admitted = [job for job in coming if entry.admits(job, queue)]
    return entry.report(len(stay) + len(_move(work, entry, admitted, patch, queue)))


def _entry(work: UnitOfWork, jobs: Sequence[JobRecord], queue: str) -> Sliced[QueueEntry]:
    return entering(work, [(job, queue) for job in jobs], letters_among(jobs))


def _move(
    work: UnitOfWork, entry: QueueEntry, jobs: Sequence[JobRecord], patch: Patch, queue: str
) -> list[JobRecord]:
    """Patch jobs that may enter the queue to which the patch moves them."""
    changed: list[JobRecord] = []
    places = {job.key: entry.place(job, queue) for job in jobs}
    # Few are more than one: the queue, or its first target.
    for place in sorted(set(places.values())):
        some = [job for job in jobs if places[job.key] == place]
        changed += patch_jobs(work, some, msgspec.structs.replace(patch, queue=place))
    entry.entered(changed)
    return changed


def _delete(work: UnitOfWork, command: DeleteJob) -> object:
    """Delete one job, whatever its state."""
    found = work.tx.briefs("read_briefs", keys=[command.key])
    briefs = [job for job in found if command.reach.covers(job.queue)]
    remove(work, briefs, revokes=True)
    return None if briefs else JobNotFound()


def _delete_slice(work: UnitOfWork, command: DeleteSlice) -> int:
    """Delete the jobs among the keys that still match the sweep's filter."""
    briefs = work.tx.briefs("read_briefs", keys=work.matching(command.keys, command.filter))
    remove(work, briefs, revokes=True)
    return len(briefs)


def _clear(work: UnitOfWork, command: Clear) -> int:
    """Delete every job with one statement a table. SQLite does that without visiting rows."""
    if command.settings:
        clear_settings(work)
    keys = work.tx.keys("read_all_in_flight")
    held = work.tx.briefs("read_briefs", keys=keys) if keys else []
    revoke(work, held)
    end_leases(work, held)
    work.write_counts()
    total: int = work.tx.value("count_all")
    for table in ("jobs", "payloads", "results", "errors", "counts", "names"):
        work.tx.write(f"clear_{table}")
    if work.has_lines:
        work.lines.delete_all(work.tx)
    for hook in work.hooks.cleared:
        hook(work, command.settings)
    work.retimed = True
    return total


def patch_jobs(work: UnitOfWork, jobs: Sequence[JobRecord], patch: Patch) -> list[JobRecord]:
    """Patch jobs that can be patched."""
    changed: list[JobRecord] = []
    for job in jobs:
        settings = work.settings_of(job.queue if patch.queue is UNSET else patch.queue)
        new = patched(job, patch, work.now, work.steady, ttl_of(job, settings))
        new.checksum = with_options(job, new.options)
        changed.append(new)
    rows = [
        (
            *(job.key, job.queue, job.priority, job.status, job.ready_at, job.options),
            *(job.due_at, job.expires_at, job.ttl_ms, job.checksum),
        )
        for job in changed
    ]
    apply(work, Move.PATCH, jobs, after=changed, changes=rows)
    return changed
