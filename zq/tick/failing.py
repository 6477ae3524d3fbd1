"""What failed attempts leave: error records, and what rooms keep of them."""

from collections import Counter

import msgspec

from zq.model.checksums import error_checksum
from zq.model.job import ErrorRecord, JobRecord
from zq.model.settling import Failure
from zq.tick.hooks import FailedAttempt
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
