"""How deliveries end in the naive queue: success, failure, and the way to a dead-letter queue."""

from collections.abc import Mapping

from zq.features.failures.model import cause_of
from zq.model.commands import Fail
from zq.model.errors import NotInFlight
from zq.model.events import EventType
from zq.model.job import ErrorRecord, JobRecord, Retention
from zq.model.leasing import Holder
from zq.model.settling import Completion, Failure

from .naive_jobs import COMPLETED, DEAD, IN_FLIGHT, SCHEDULED, NaiveJobs
from .naive_row import Row


class Settling(NaiveJobs):
    """Ends jobs in flight, or has them wait again."""

    def _is_stale(self, key: int, said: Mapping[int, Completion]) -> bool:
        """Whether the delivery that is named, of a job that is there, is not the current one."""
        row = self.rows.get(key)
        if key not in said or said[key].lease is None or row is None or row.expired(self.now):
            return False
        return row.status is not IN_FLIGHT or row.deliveries != said[key].lease

    def _succeed(self, key: int, told: Completion | None) -> bool:
        row = self.rows.get(key)
        if row is None or row.status is not IN_FLIGHT:
            return False
        self._record(row, "completed")
        self._tell(EventType.COMPLETED, row)
        self.outcome.traffic.completed[row.queue] += 1
        told = told or Completion()
        said = (told.retention or Retention()).completed_ms
        keep_ms = self._keep_ms(row, "completed_ms", said)
        if keep_ms == 0:
            return self._remove(key)
        row.result = told.result
        row.finished_at, row.purge_at = self.now, self.now + keep_ms
        self._to(row, COMPLETED)
        return True

    def _fail(self, command: Fail) -> object:
        row = self.rows.get(command.key)
        if row is None or row.status is not IN_FLIGHT:
            return NotInFlight()
        failure = command.failure
        settings = self._set_for(row.queue)
        limits = (row.retry_limit, settings.retry_limit, self.policy.retry_limit)
        limit = next(limit for limit in limits if limit is not None)
        attempts = row.attempts + 1 - row.forgiven
        grave, after = self._grave(row)
        enough = grave is not None and (grave == row.queue or bool(after and attempts >= after))
        dies = failure.kill or (failure.retry_at is None and (attempts > limit or enough))
        self._note(row, failure, "dead" if dies else "failed")
        if dies:
            return self._bury(row, "killed" if failure.kill else "exhausted")
        backoff = row.backoff or settings.backoff or self.policy.backoff
        delay = int(attempts**backoff.exponent * 1000 + backoff.base_ms)
        if failure.at_once:
            delay = 0
        row.ready_at = self.now + delay if failure.retry_at is None else failure.retry_at
        row.due_at = row.ready_at if failure.retry_at is None else None
        self._tell(EventType.RETRYING, row)
        self._wait_again(row, SCHEDULED)
        return row.job()

    def _note(self, row: Row, failure: Failure, outcome: str) -> None:
        """What a failed attempt leaves."""
        assert row.dequeued_at is not None
        self._record(row, outcome, failure.error_type, failure.message)
        row.attempts += 1
        row.failed_at = self.now
        self.outcome.traffic.failed[row.queue] += 1
        texts = (failure.message, failure.error_type, failure.backtrace)
        signature = cause_of(failure.error_type, failure.message).signature
        worker = row.claimant or self.workers.get(row.holder or 0, Holder()).name or None
        record = ErrorRecord(row.attempts, *texts, row.dequeued_at, self.now, signature, worker)
        row.errors.append(record)

    def _bury(self, row: Row, reason: str) -> JobRecord:
        self._tell(EventType.FAILED, row)
        row.reason = reason
        grave, after = self._grave(row)
        too_soon = reason == "exhausted" and row.attempts - row.forgiven < (after or 0)
        moves = grave is not None and grave != row.queue and after != 0 and not too_soon
        if moves and grave and self._keeps_out(row, grave, keyless=True) is None:
            self._disown(row)
            row.origin = row.origin or row.queue
            row.died_at = self.now
            self._revive(row, grave)
            return row.job()
        keep_ms = self._keep_ms(row, "dead_ms")
        row.purge_at = self.now + keep_ms if keep_ms else None
        self._to(row, DEAD)
        row.finished_at = self.now
        reply = row.job()
        if not keep_ms:
            self._remove(row.key)
        return reply

    def _grave(self, row: Row) -> tuple[str | None, int | None]:
        """The dead-letter queue of a job, and after how many failures it moves there."""
        if row.dead_letter is not None:
            return row.dead_letter, row.dead_letter_after
        settings = self._set_for(row.queue)
        return settings.dead_letter, settings.dead_letter_after
