"""The history of jobs: one record for each attempt, in the transaction that ends the attempt.

The history is a log. Records are only appended, are numbered without gaps, and are removed by
retention. After a crash the end of an attempt and its record are both there, or neither is.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from zq.features.history.model import AttemptOutcome, StoredAttempt
from zq.model.lifecycle import Move
from zq.model.log import HISTORY_LOG
from zq.tick.hooks import FailedAttempt, Hooks, Jobs, Options
from zq.tick.logs import append_records
from zq.tick.work import UnitOfWork

OUTCOMES = {
    Move.STALL: AttemptOutcome.STALLED,
    Move.SUCCEED: AttemptOutcome.COMPLETED,
    Move.EXPIRE: AttemptOutcome.EXPIRED,
    Move.CANCEL: AttemptOutcome.CANCELLED,
    Move.FORCE: AttemptOutcome.CANCELLED,
}
"""The moves that end an attempt without a failure, which has an error of its own."""

MOST_MESSAGE = 1024
"""Characters of an error message in a record. The job's own record has the whole message."""


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Records of ended attempts, if the history of a device is kept."""
    device = options.get("device")
    if device is None:
        return Hooks()
    history = _History(device)
    moves = {move: partial(history.record, outcome) for move, outcome in OUTCOMES.items()}
    return Hooks(moves=moves, failed=history.record_failures)


class _History:
    def __init__(self, device: str) -> None:
        self._device = device

    def record(self, outcome: AttemptOutcome, work: UnitOfWork, jobs: Jobs, after: object) -> None:
        """Record this outcome for an attempt of each of these jobs, as read from their rows.

        A job that has left for another server, held by a negative number, is attempted there.
        """
        jobs = [job for job in jobs if job.holder is None or job.holder >= 0]
        if not jobs:
            return
        shared = self._shared(work, [job.holder for job in jobs]) | {"outcome": outcome}
        _append(work, "append_attempts", shared, keys=[job.key for job in jobs])

    def record_failures(self, work: UnitOfWork, failed: Sequence[FailedAttempt]) -> None:
        """Record failed attempts, each with an outcome and an error of its own."""
        rows = [
            (
                each.job.key,
                AttemptOutcome.DEAD if each.died else AttemptOutcome.FAILED,
                each.failure.error_type,
                each.failure.message[:MOST_MESSAGE],
            )
            for each in failed
        ]
        shared = self._shared(work, [each.job.holder for each in failed])
        _append(work, "append_failures", shared, failures=rows)

    def _shared(self, work: UnitOfWork, holders: Iterable[int | None]) -> dict[str, object]:
        """The fields that a tick's records share. `workers` are by the numbers of their streams."""
        workers = {
            holder: work.workers[holder].name
            for holder in set(holders)
            if holder is not None and holder in work.workers and work.workers[holder].name
        }
        return {"device": self._device, "finished_at": work.now, "workers": workers}


def append_forwarded(work: UnitOfWork, device: str, records: Sequence[StoredAttempt]) -> None:
    """Record attempts that have ended on a device."""
    shared = {"device": device, "finished_at": work.now, "workers": {}}
    _append(work, "append_forwarded", shared, records=list(records))


def _append(work: UnitOfWork, statement: str, shared: object, **parameters: object) -> None:
    last = append_records(work, HISTORY_LOG, statement, shared, **parameters)
    if last is not None:
        work.effects.logged = last
