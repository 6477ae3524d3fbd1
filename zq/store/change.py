"""The tick's phase of changes: patches and deletions, of one job or of a sweep's slice."""

from collections.abc import Sequence

from zq.model.commands import (
    Cancel,
    CancelSlice,
    Change,
    ChangeSlice,
    Clear,
    Delete,
    DeleteSlice,
    Retain,
    Retry,
    ReviveSlice,
    SetAside,
    SetQueue,
)
from zq.model.errors import JobNotFound, Unprocessable, ZqError
from zq.model.job import Job
from zq.model.lifecycle import Move, Status, sources
from zq.model.patching import Patch, moves_a_running_head, patched, refuse_terminal
from zq.store.bury import retry, revive_slice
from zq.store.finish import cancel, cancel_slice, retain
from zq.store.pick import still_matching, visible_job
from zq.store.settings import clear_settings, set_queue
from zq.store.work import QUERIES, Work, as_json

AnyChange = (
    Change
    | ChangeSlice
    | Delete
    | DeleteSlice
    | Clear
    | Cancel
    | CancelSlice
    | Retain
    | Retry
    | ReviveSlice
    | SetQueue
    | SetAside
)


def apply_changes(work: Work, commands: Sequence[AnyChange]) -> list[object]:
    """Patch and delete, one command after the other."""
    return [_apply_change(work, command) for command in commands]


def _apply_change(work: Work, command: AnyChange) -> object:
    match command:
        case Change():
            return _change(work, command)
        case ChangeSlice():
            return _change_slice(work, command)
        case Delete():
            return _delete(work, command)
        case DeleteSlice():
            return _delete_slice(work, command)
        case Clear():
            return _clear(work, command)
        case Cancel():
            return cancel(work, command)
        case CancelSlice():
            return cancel_slice(work, command)
        case Retain():
            return retain(work, command)
        case Retry():
            return retry(work, command)
        case ReviveSlice():
            return revive_slice(work, command)
        case SetQueue():
            return set_queue(work, command)
        case SetAside():
            work.set_aside(command.source, command.keys)
            return None


def _change(work: Work, command: Change) -> object:
    """Patch one job."""
    job = visible_job(work, command.key, command.reach)
    if job is None:
        return JobNotFound()
    try:
        refuse_terminal(command.text_id, job.status)
    except ZqError as refusal:
        return refusal
    if moves_a_running_head(job, command.patch):
        return Unprocessable(
            f"cannot move job {command.text_id} to another queue while it is in flight, for it"
            f" belongs to group {job.group!r}: try again when it waits"
        )
    (changed,) = _apply(work, [job], command.patch)
    return changed


def _change_slice(work: Work, command: ChangeSlice) -> int:
    """Patch the jobs among the keys that still match the sweep's filter and can be patched."""
    keys = still_matching(work, command.keys, command.filter)
    jobs = work.jobs(QUERIES["read_jobs"], keys=as_json(keys))
    patchable = sources(Move.PATCH)
    chosen = [
        job
        for job in jobs
        if job.status in patchable and not moves_a_running_head(job, command.patch)
    ]
    return len(_apply(work, chosen, command.patch))


def _delete(work: Work, command: Delete) -> object:
    """Delete one job, whatever it is doing."""
    found = work.briefs("read_briefs", [command.key])
    briefs = [job for job in found if command.reach.covers(job.queue)]
    work.revoke(briefs)
    work.remove(briefs)
    return None if briefs else JobNotFound()


def _delete_slice(work: Work, command: DeleteSlice) -> int:
    """Delete the jobs among the keys that still match the sweep's filter."""
    keys = still_matching(work, command.keys, command.filter)
    briefs = work.briefs("read_briefs", keys)
    work.revoke(briefs)
    work.remove(briefs)
    return len(briefs)


def _clear(work: Work, command: Clear) -> int:
    """Delete every job by one statement a table, which SQLite does without visiting rows."""
    if command.settings:
        clear_settings(work)
    held = work.briefs("read_briefs", work.keys(QUERIES["read_all_in_flight"]))
    work.revoke(held)
    work.end(held)
    work.write_counts()
    total = work.value(QUERIES["count_all"], {})
    assert isinstance(total, int)
    for table in ("jobs", "payloads", "results", "errors", "counts", "names"):
        work.run(f"clear_{table}")
    work.moved.update(Status)
    return total


def _apply(work: Work, jobs: Sequence[Job], patch: Patch) -> list[Job]:
    changed = [patched(job, patch, work.now) for job in jobs]
    rows = [
        (job.key, job.queue, job.priority, job.status, job.ready_at, job.options) for job in changed
    ]
    if rows:
        work.run("change", changes=as_json(rows))
    for old, new in zip(jobs, changed, strict=True):
        work.counts[old.queue, old.status] -= 1
        work.counts[new.queue, new.status] += 1
        if old.queue != new.queue:
            work.touch_group(old.queue, old.group)
            work.touch_group(new.queue, new.group)
        if new.status is Status.READY:
            work.woken.add(new.queue)
    return changed
