"""What failed attempts leave: error records, records of the history, counts of their causes."""

from collections import Counter

import msgspec

from zq.features.failures.model import Cause, cause_of
from zq.features.failures.tick import count_causes
from zq.features.history.tick import FailedAttempt, record_failures
from zq.model.checksums import error_checksum
from zq.model.job import ErrorRecord, JobRecord
from zq.model.settling import Failure
from zq.tick.work import UnitOfWork

_ERROR_COLUMNS = (
    "job_id, attempt, message, error_type, backtrace, dequeued_at, failed_at, signature, worker,"
    " checksum"
)


class FailedAttempts:
    """The failed attempts of a phase. Store them before the rows of their jobs change."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._errors: list[tuple[object, ...]] = []
        self._causes: list[tuple[Cause, JobRecord]] = []
        self._failed: list[FailedAttempt] = []
        self._last: dict[int, int] = {}
        """The attempts of the jobs that die, by key."""

    def count(self, job: JobRecord) -> None:
        """Count an attempt of a job that has failed now."""
        job.attempts, job.failed_at = job.attempts + 1, self._work.now

    def add(self, job: JobRecord, failure: Failure, *, died: bool) -> ErrorRecord:
        """Note a counted failure, of which the job may have died. Return its error record."""
        cause = cause_of(failure.error_type, failure.message)
        record = self._record(job, failure, cause)
        self._causes.append((cause, job))
        self._errors.append((job.key, *msgspec.structs.astuple(record), error_checksum(record)))
        self._failed.append(FailedAttempt(job.key, job.holder, died, failure))
        if died:
            self._last[job.key] = job.attempts
        return record

    def store(self) -> None:
        """Store all of them."""
        if not self._failed:
            return
        work = self._work
        work.effects.traffic.append(("failed", Counter([job.queue for _, job in self._causes])))
        record_failures(work, self._failed)
        work.tx.insert_large("errors", _ERROR_COLUMNS, self._errors)
        count_causes(work, self._causes)
        if self._last:
            work.tx.run("note_last_failures", attempts=self._last, now=work.now)

    def _record(self, job: JobRecord, failure: Failure, cause: Cause) -> ErrorRecord:
        assert job.dequeued_at is not None
        holder = self._work.workers.get(job.holder or 0)
        worker = job.claimant or (holder.name or None if holder else None)
        texts = (failure.message, failure.error_type, failure.backtrace)
        times = (job.dequeued_at, self._work.now)
        return ErrorRecord(job.attempts, *texts, *times, cause.signature, worker)
