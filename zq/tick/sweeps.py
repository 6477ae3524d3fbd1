"""What a slice leaves behind of its sweep, and how a cancellation is taken back."""

from collections.abc import Sequence

from zq.model.commands import EndSweep, Undone, UndoSlice
from zq.model.job import JobRecord, brief_of
from zq.model.lifecycle import Move, Status
from zq.model.sweeps import MOST_SWEEPS, SweepMark
from zq.tick.accounts import refuse_gone
from zq.tick.moves import apply
from zq.tick.work import UnitOfWork


def note_slice(work: UnitOfWork, mark: SweepMark | None, changed: int) -> None:
    """Store what a sweep has done so far, in the transaction in which it did it."""
    if mark is None or not changed:
        return
    work.tx.run(
        "note_slice",
        id=mark.id,
        outline=mark.outline,
        changed=changed,
        passed=mark.passed,
        now=work.now,
    )
    work.tx.run("forget_sweeps", upto=mark.id - MOST_SWEEPS)


def end_sweep(work: UnitOfWork, command: EndSweep) -> None:
    """Note that a sweep came to its end by a look that found nothing more."""
    work.tx.run("end_sweep", id=command.id)


def undo_slice(work: UnitOfWork, command: UndoSlice) -> Undone:
    """Take back those of the keys that the sweep has cancelled and that may come back."""
    found = work.tx.jobs("read_jobs", keys=work.tx.matching(command.keys, command.filter))
    jobs = [job for job in found if job.purge_at is not None and job.purge_at > work.now]
    kept: dict[str, int] = {}
    back: list[JobRecord] = []
    taken = _taken_locks(work, jobs)
    for job in jobs:
        why = _obstacle(work, job, taken)
        if why is None:
            back.append(job)
            if job.lock is not None:
                taken.add(job.lock)
        else:
            kept[why] = kept.get(why, 0) + 1
    _restore(work, back)
    if back:
        work.tx.run("note_undone", id=command.filter.swept, n=len(back))
    return Undone(len(back), kept)


def _obstacle(work: UnitOfWork, job: JobRecord, taken: set[str]) -> str | None:
    """Why a job cannot be as it was."""
    if job.lock in taken:
        return "key_taken"
    if job.expires_at is not None and job.expires_at <= work.now:
        return "expired"
    return "budget_gone" if refuse_gone(work.ledger, [job]) else None


def _taken_locks(work: UnitOfWork, jobs: Sequence[JobRecord]) -> set[str]:
    """Those of the jobs' unique keys that other jobs own by now."""
    locks = sorted({job.lock for job in jobs if job.lock is not None})
    owners = work.tx.owners(locks) if locks else []
    return {owner.lock for owner in owners if owner.lock is not None}


def _restore(work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
    """Make cancelled jobs wait again, each in its old place. The objects follow their rows."""
    before = [brief_of(job) for job in jobs]
    for job in jobs:
        job.status = Status.SCHEDULED if job.ready_at > work.now else Status.READY
        job.finished_at = job.purge_at = None
    rows = [(job.key, job.status) for job in jobs]
    apply(work, Move.UNDO, before, after=jobs, restored=rows)
