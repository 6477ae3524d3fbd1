"""What a slice leaves behind of its sweep, and how a cancellation is taken back."""

from collections.abc import Sequence

from zq.features.sweeps.model import MOST_SWEEPS, EndSweep, SweepMark, UndoSlice
from zq.model.commands import Entered, SliceMark
from zq.model.job import JobRecord, brief_of
from zq.model.lifecycle import Move, Status
from zq.store.api import Sliced
from zq.tick.entering import QueueEntry, entering, letters_among
from zq.tick.hooks import Hooks, Options
from zq.tick.moves import apply
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork, kept_by, note_slice


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """The sweeps' part in a tick: each slice stores how far its sweep has come."""
    return Hooks(sliced=_note, cleared=_clear)


def _note(work: UnitOfWork, mark: SliceMark, changed: int) -> None:
    """Store what a sweep has done so far, in the transaction in which it did it."""
    assert isinstance(mark, SweepMark)
    work.tx.write(
        "note_slice",
        id=mark.id,
        outline=mark.outline,
        changed=changed,
        passed=mark.passed,
        now=work.now,
    )
    work.tx.write("forget_sweeps", upto=mark.id - MOST_SWEEPS)


def _clear(work: UnitOfWork, settings: bool) -> None:
    if settings:
        work.tx.write("clear_sweeps")


def change_sweeps(
    work: UnitOfWork, commands: Sequence[UndoSlice | EndSweep]
) -> Sliced[list[object]]:
    """Take back cancellations, and note the ends of sweeps, one command after the other."""
    replies: list[object] = []
    for command in commands:
        if isinstance(command, UndoSlice):
            undone = yield from _undo_slice(work, command)
            note_slice(work, command.mark, undone.changed)
            replies.append(undone)
        else:
            # Its last look has found nothing more.
            work.tx.write("end_sweep", id=command.id)
            replies.append(None)
    return replies


def _undo_slice(work: UnitOfWork, command: UndoSlice) -> Sliced[Entered]:
    """Take back those of the keys that the sweep has cancelled and that may come back."""
    found = work.tx.jobs("read_jobs", keys=work.matching(command.keys, command.filter))
    jobs = [job for job in found if job.purge_at is not None and job.purge_at > work.steady]
    entry = yield from entering(work, [(job, job.queue) for job in jobs], letters_among(jobs))
    back = [job for job in jobs if entry.admits(job, job.queue, _obstacle(work, job))]
    _restore(work, back, entry)
    if back:
        work.tx.write("note_undone", id=command.filter.swept, n=len(back))
    return entry.report(len(back))


def _obstacle(work: UnitOfWork, job: JobRecord) -> str | None:
    """Why a job cannot be as it was."""
    if job.expires_at is not None and job.expires_at <= work.steady:
        return "expired"
    if job.ttl_ms is not None and job.ready_at + job.ttl_ms <= work.now:
        return "expired"
    return kept_by(work, job)


def _restore(work: UnitOfWork, jobs: Sequence[JobRecord], entry: QueueEntry) -> None:
    """Make cancelled jobs wait again, each in its old place. The objects follow their rows."""
    before = [brief_of(job) for job in jobs]
    for job in jobs:
        job.queue = entry.place(job, job.queue)
        _go_on_waiting(work, job)
        job.finished_at = job.purge_at = None
    rows = [
        (job.key, job.status, job.queue, job.due_at, job.expires_at, job.ttl_ms) for job in jobs
    ]
    apply(work, Move.UNDO, before, after=jobs, restored=rows)
    entry.entered(jobs)


def _go_on_waiting(work: UnitOfWork, job: JobRecord) -> None:
    """Let a cancelled job wait on for its date or its time, or for a worker."""
    waits = job.ready_at > work.now if job.due_at is None else job.due_at > work.steady
    job.status = Status.SCHEDULED if waits else Status.READY
    if not waits:
        job.due_at = None
        if job.ttl_ms is not None:
            job.expires_at = job.ready_at + work.steady - work.now + job.ttl_ms
            job.ttl_ms = None


PHASES = (Phase(Stage.CHANGE, by_slices(change_sweeps), (UndoSlice, EndSweep)),)
