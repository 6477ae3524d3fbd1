"""Changes that finish a job without its worker, or set the retention of a finished job."""

from collections.abc import Sequence

from zq.model.commands import CancelJob, CancelSlice, RetainJob, SliceMark
from zq.model.errors import JobNotFound, NotCancellable, NotFinished
from zq.model.job import Brief, brief_of
from zq.model.lifecycle import NAMES, TERMINAL, Move, Status, sources
from zq.model.settling import kept_until
from zq.tick.moves import apply, remove
from zq.tick.work import UnitOfWork, first_visible, visible_job


def cancel(work: UnitOfWork, command: CancelJob) -> object:
    """Cancel one job, given by its key or by the lock of its unique key."""
    if command.key is not None:
        job = visible_job(work, command.key, command.reach)
    else:
        assert command.lock is not None
        owners = work.tx.owners([command.lock])
        job = first_visible(work, owners, command.reach)
    if job is None:
        return JobNotFound()
    move = _cancelling(command.force)
    if job.status not in sources(move):
        return NotCancellable(NAMES[job.status])
    _finish(work, move, [brief_of(job)], Status.CANCELLED, command.mark)
    policy = work.policy_of(job.queue)
    job.purge_at = kept_until(Status.CANCELLED, job.options, work.steady, policy)
    if job.status is not Status.SCHEDULED:
        job.due_at = work.steady
    job.status, job.finished_at = Status.CANCELLED, work.now
    job.holder = job.claimant = job.lease_until = None
    return job


def cancel_slice(work: UnitOfWork, command: CancelSlice) -> int:
    """Cancel the jobs among the keys that still match the sweep's filter and can be cancelled."""
    move = _cancelling(command.force)
    found = work.tx.briefs("read_briefs", keys=work.matching(command.keys, command.filter))
    jobs = [job for job in found if job.status in sources(move)]
    _finish(work, move, jobs, Status.CANCELLED, command.mark)
    return len(jobs)


def retain(work: UnitOfWork, command: RetainJob) -> object:
    """Begin a finished job's retention now."""
    job = visible_job(work, command.key, command.reach)
    if job is None:
        return JobNotFound()
    if job.status not in TERMINAL:
        return NotFinished(NAMES[job.status])
    job.purge_at = kept_until(
        job.status, job.options, work.steady, work.policy_of(job.queue), command.retention
    )
    if job.purge_at is None:
        remove(work, [brief_of(job)])
    else:
        work.tx.write("retain", key=job.key, purge_at=job.purge_at)
        work.retimed = True
    return job


def expire(work: UnitOfWork, jobs: Sequence[Brief]) -> None:
    """Expire waiting jobs that nobody took in time."""
    _finish(work, Move.EXPIRE, jobs, Status.EXPIRED)


def displace(work: UnitOfWork, jobs: Sequence[Brief]) -> None:
    """Expire waiting jobs that make room for others. They are not retained: others follow them."""
    apply(work, Move.EXPIRE, (), gone=jobs)


def _cancelling(force: bool) -> Move:
    return Move.FORCE if force else Move.CANCEL


def _finish(
    work: UnitOfWork,
    move: Move,
    jobs: Sequence[Brief],
    status: Status,
    mark: SliceMark | None = None,
) -> None:
    """Give jobs their final status, or delete them if they are not retained."""
    sweep = None if mark is None else mark.id
    kept: list[Brief] = []
    gone: list[Brief] = []
    ends: list[tuple[int, int, int | None]] = []
    for job in jobs:
        purge_at = kept_until(status, job.options, work.steady, work.policy_of(job.queue))
        if purge_at is None:
            gone.append(job)
        else:
            kept.append(job)
            ends.append((job.key, purge_at, sweep))
    apply(work, move, kept, gone=gone, ends=ends)
