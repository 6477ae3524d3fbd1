"""Changes that finish a job without its worker, or say how long a finished one is kept."""

from collections.abc import Sequence

from zq.model.commands import Cancel, CancelSlice, Retain
from zq.model.errors import JobNotFound, NotCancellable, NotFinished
from zq.model.lifecycle import NAMES, TERMINAL, Move, Status, sources
from zq.model.settling import kept_until
from zq.store.pick import owner_of, still_matching, visible_job
from zq.store.work import Brief, Work, as_json, brief_of


def cancel(work: Work, command: Cancel) -> object:
    """Cancel one job, named by its key or by the unique key that it owns."""
    if command.key is not None:
        job = visible_job(work, command.key, command.reach)
    else:
        assert command.unique_key is not None
        job = owner_of(work, command.unique_key, command.reach)
    if job is None:
        return JobNotFound()
    if job.status not in _cancellable(command.force):
        return NotCancellable(NAMES[job.status])
    _cancel(work, [brief_of(job)], command.force)
    job.purge_at = kept_until(Status.CANCELLED, job.options, work.now, work.policy)
    job.status, job.holder, job.finished_at = Status.CANCELLED, None, work.now
    return job


def cancel_slice(work: Work, command: CancelSlice) -> int:
    """Cancel the jobs among the keys that still match the sweep's filter and can be cancelled."""
    keys = still_matching(work, command.keys, command.filter)
    chosen = _cancellable(command.force)
    briefs = [job for job in work.briefs("read_briefs", keys) if job.status in chosen]
    _cancel(work, briefs, command.force)
    return len(briefs)


def retain(work: Work, command: Retain) -> object:
    """Let a finished job's retention begin now."""
    job = visible_job(work, command.key, command.reach)
    if job is None:
        return JobNotFound()
    if job.status not in TERMINAL:
        return NotFinished(NAMES[job.status])
    job.purge_at = kept_until(job.status, job.options, work.now, work.policy, command.retention)
    if job.purge_at is None:
        work.remove([brief_of(job)])
    else:
        work.run("retain", key=job.key, purge_at=job.purge_at)
        work.moved.add(job.status)
    return job


def _cancellable(force: bool) -> frozenset[Status]:
    return sources(Move.FORCE if force else Move.CANCEL)


def _cancel(work: Work, briefs: Sequence[Brief], force: bool) -> None:
    purges: dict[int, int] = {}
    gone: list[Brief] = []
    for job in briefs:
        purge_at = kept_until(Status.CANCELLED, job.options, work.now, work.policy)
        if purge_at is None:
            gone.append(job)
            continue
        purges[job.key] = purge_at
        work.counts[job.queue, job.status] -= 1
        work.counts[job.queue, Status.CANCELLED] += 1
        if job.holder is not None:
            work.ended.append((job.holder, job.key))
    if purges:
        name = "cancel_by_force" if force else "cancel"
        work.run(name, purges=as_json(purges), now=work.now)
    work.remove(gone)
    work.cancelled += [job.key for job in briefs]
