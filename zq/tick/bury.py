"""Failed attempts, the death of jobs, and how they are revived.

A dying job becomes a dead letter, if there is a queue for it and that has room: it moves there, is
ready, and its attempts count from the start. It keeps its id and the history of its errors. What
belonged to the life that ended it gives up: its unique key is free, and those who wait for it learn
that it is dead, also later. A dead letter that goes home begins a new life with its key, unless
another job has that by now. Where there is no queue for dead letters, the job is dead.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from zq.model.checksums import error_checksum, with_options
from zq.model.commands import Entered, Revive, ReviveSlice
from zq.model.errors import JobNotFound, KeyTaken, NotDead, QueueOutOfReach
from zq.model.job import (
    MAX_TIME,
    NO_EXTRAS,
    NO_OPTIONS,
    Brief,
    ErrorRecord,
    Extras,
    JobRecord,
    Reason,
    brief_of,
)
from zq.model.lifecycle import NAMES, Move, Status, sources
from zq.model.settings import (
    DeadLetter,
    QueueSettings,
    dead_letter_of,
    fixed_options,
    fixed_ttl,
    grave_of,
    ttl_of,
)
from zq.model.settling import Failure, kept_until
from zq.store.api import Sliced
from zq.tick.entering import entering, letters_among
from zq.tick.fitting import Arrival
from zq.tick.hooks import FailedAttempt
from zq.tick.moves import apply, tell
from zq.tick.work import UnitOfWork, kept_by, refuse_return, visible_job

_ERROR_COLUMNS = (
    "job_id, attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker,"
    " checksum"
)


class FailedAttempts:
    """The failed attempts of a phase. Store them before the rows of their jobs change."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._errors: list[tuple[object, ...]] = []
        self._failed: list[FailedAttempt] = []
        self._last: dict[int, int] = {}
        """The attempts of the jobs that die, by key."""

    def count(self, job: JobRecord) -> None:
        """Count an attempt of a job that has failed now."""
        job.attempts, job.failed_at = job.attempts + 1, self._work.now

    def add(self, job: JobRecord, failure: Failure, *, died: bool) -> ErrorRecord:
        """Note a counted failure, of which the job may have died. Return its error record."""
        record = self._record(job, failure)
        self._errors.append((job.key, *msgspec.structs.astuple(record), error_checksum(record)))
        self._failed.append(FailedAttempt(job, died, failure))
        if died:
            self._last[job.key] = job.attempts
        return record

    def store(self) -> None:
        """Store all of them."""
        if not self._failed:
            return
        work = self._work
        work.effects.traffic.append(("failed", Counter([each.job.queue for each in self._failed])))
        for hook in work.hooks.failed:
            hook(work, self._failed)
        work.tx.insert_large("errors", _ERROR_COLUMNS, self._errors)
        if self._last:
            work.tx.write("note_last_failures", attempts=self._last, now=work.now)

    def _record(self, job: JobRecord, failure: Failure) -> ErrorRecord:
        assert job.dequeued_at is not None
        holder = self._work.workers.get(job.holder or 0)
        worker = job.claimant or (holder.name or None if holder else None)
        texts = (failure.message, failure.error_type, failure.backtrace)
        times = (job.dequeued_at, self._work.now)
        sign = self._work.hooks.signature
        signature = None if sign is None else sign(failure)
        return ErrorRecord(job.attempts, *texts, *times, signature, worker)


_DEAD = frozenset({Status.DEAD})
_RETURNABLE = sources(Move.REVIVE) - {Status.IN_FLIGHT}
_ALIVE = {"reason": None, "origin": None, "died_at": None}
_NOT_FIXED = {"retry_limit": None, "dead_letter": None, "dead_letter_after": None}


def bury(work: UnitOfWork, dying: Sequence[tuple[JobRecord, Reason]]) -> Sliced[None]:
    """Let jobs in flight die, each for its reason. The objects are updated to match their rows.

    Whatever caused their death, such as a failed attempt, is in the database already.
    """
    letters: dict[int, str] = {}
    for job, reason in dying:
        letter = dead_letter_of(job.options, work.settings_of(job.queue))
        where = queue_as_named(work, letter, job)
        target = grave_of(letter, where, job.attempts - job.forgiven, reason)
        if target is not None:
            letters[job.key] = target
    arrivals = [(job, letters[job.key]) for job, _ in dying if job.key in letters]
    entry = yield from entering(work, arrivals, letters, all_now=True)
    moved: list[Arrival] = []
    dead: list[JobRecord] = []
    for job, reason in dying:
        target = letters.get(job.key)
        if target is None or entry.refusal(job, target) is not None:
            _change_extras(job, reason=reason)
            dead.append(job)
            entry.leaves(job)
        else:
            origin = _extras(job).origin or job.queue
            _change_extras(job, reason=reason, origin=origin, died_at=work.now)
            moved.append((job, entry.place(job, target)))
    _bury(work, dead)
    # They are reported once more, as new jobs of the other queue.
    tell(work, Move.BURY, [brief_of(job) for job, _ in moved])
    _revive(work, moved)
    entry.entered([job for job, _ in moved])


def queue_as_named(work: UnitOfWork, letter: DeadLetter, job: JobRecord) -> str:
    """The queue of a job; that of its dead letters if the job lies in one of its targets."""
    if letter.queue is None or job.queue not in work.rulebook.fanning.get(letter.queue, ()):
        return job.queue
    return letter.queue


def retry(work: UnitOfWork, command: Revive) -> Sliced[object]:
    """Make one dead job ready again: in its queue, or with `home` where it died first."""
    job = visible_job(work, command.key, command.reach)
    if job is None:
        return JobNotFound()
    target = _extras(job).origin if command.home else job.queue
    if target is None or job.status not in (_RETURNABLE if command.home else _DEAD):
        return NotDead(NAMES[job.status])
    if not command.reach.covers(target):
        return QueueOutOfReach(target, command.reach.prefixes)
    if (refusal := refuse_return(work, [job])) is not None:
        return refusal
    keyless = () if command.home else letters_among([job])
    entry = yield from entering(work, [(job, target)], keyless)
    refused = entry.refusal(job, target)
    if isinstance(refused, KeyTaken) and command.yields:
        entry = yield from entering(work, [(job, target)], [job.key])
        refused = entry.refusal(job, target)
    if refused is not None:
        return refused
    if command.home:
        _change_extras(job, **_ALIVE)
    else:
        _change_extras(job, reason=None)
    _revive(work, [(job, entry.place(job, target))], command.defaults)
    entry.entered([job])
    return job


def revive_slice(work: UnitOfWork, command: ReviveSlice) -> Sliced[Entered]:
    """Revive the jobs among the keys that still match the sweep's filter and may come back."""
    keys = work.matching(command.keys, command.filter)
    arrivals = [
        (job, target)
        for job in work.tx.jobs("read_jobs", keys=keys)
        if command.filter.reach.covers(target := _extras(job).origin or job.queue)
    ]
    entry = yield from entering(work, arrivals)
    admitted: list[Arrival] = []
    for job, target in arrivals:
        if entry.admits(job, target, kept_by(work, job)):
            _change_extras(job, **_ALIVE)
            admitted.append((job, entry.place(job, target)))
    _revive(work, admitted)
    entry.entered([job for job, _ in admitted])
    return entry.report(len(admitted))


def _bury(work: UnitOfWork, jobs: Sequence[JobRecord]) -> None:
    """Mark jobs in flight as dead, or delete them if they are not retained."""
    kept: list[Brief] = []
    gone: list[Brief] = []
    graves: list[tuple[object, ...]] = []
    for job in jobs:
        policy = work.policy_of(job.queue)
        job.purge_at = kept_until(Status.DEAD, job.options, work.steady, policy)
        if job.purge_at is None:
            gone.append(brief_of(job))
        else:
            kept.append(brief_of(job))
            graves.append((job.key, job.purge_at, job.extras))
    apply(work, Move.BURY, kept, gone=gone, graves=graves)
    for job in jobs:
        job.status, job.finished_at = Status.DEAD, work.now
        job.holder = job.lease_until = job.claimant = None


def _revive(
    work: UnitOfWork,
    targets: Sequence[Arrival],
    defaults: QueueSettings | None = None,
) -> None:
    """Make jobs ready that wait, die or are dead, each in the given queue.

    Attempts, stalls and the time to live begin anew. With `defaults`, so does what the queue's
    settings fix for new jobs. The objects are updated to match their rows.
    """
    before = [brief_of(job) for job, _ in targets]
    rows: list[tuple[object, ...]] = []
    for job, queue in targets:
        settings = work.settings_of(queue)
        ttl_ms = ttl_of(job, settings)
        if defaults is not None:
            own = msgspec.structs.replace(job.options or NO_OPTIONS, **_NOT_FIXED)
            options = fixed_options(own, settings, defaults)
            job.checksum, job.options = with_options(job, options), options
            ttl_ms = fixed_ttl(settings, defaults)
        expires_at = min(work.steady + ttl_ms, MAX_TIME) if ttl_ms else None
        said = job.extras, job.options, job.checksum
        rows.append((job.key, job.status, queue, expires_at, *said))
        job.queue, job.status, job.ready_at = queue, Status.READY, work.now
        job.expires_at, job.forgiven, job.stalls = expires_at, job.attempts, 0
        job.finished_at = job.purge_at = job.holder = job.lease_until = job.claimant = None
        job.due_at = job.ttl_ms = None
    apply(work, Move.REVIVE, before, after=[job for job, _ in targets], revivals=rows)


def _extras(job: JobRecord) -> Extras:
    return job.extras or NO_EXTRAS


def _change_extras(job: JobRecord, **changes: str | int | None) -> None:
    changed = msgspec.structs.replace(_extras(job), **changes)
    job.extras = None if changed == NO_EXTRAS else changed
