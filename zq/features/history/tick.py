"""The history of jobs: one record for each attempt, in the transaction that ends the attempt.

The history is a log. Records are only appended, are numbered without gaps, and are removed by
retention. After a crash the end of an attempt and its record are both there, or neither is.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zq.features.history.model import HISTORY_LOG, AttemptOutcome
from zq.model.job import Brief, JobRecord
from zq.model.settling import Failure
from zq.tick.logs import append_records
from zq.tick.work import UnitOfWork

MOST_MESSAGE = 1024
"""Characters of an error message in a record. The job's own record has the whole message."""


class FailedAttempt(NamedTuple):
    """An attempt that has failed, and whether the job has died of it."""

    key: int
    holder: int | None
    died: bool
    failure: Failure


def record(work: UnitOfWork, outcome: AttemptOutcome, jobs: Sequence[Brief | JobRecord]) -> None:
    """Record this outcome for an attempt of each of these jobs.

    Call it before their rows are changed or deleted, since the attempt is read from them. Nothing
    happens if no history is kept.
    """
    if work.device is not None and jobs:
        shared = _shared(work, [job.holder for job in jobs]) | {"outcome": outcome}
        _append(work, "append_attempts", shared, keys=[job.key for job in jobs])


def record_failures(work: UnitOfWork, failed: Sequence[FailedAttempt]) -> None:
    """The same for failed attempts, each with an outcome and an error of its own."""
    if work.device is not None and failed:
        rows = [
            (
                each.key,
                AttemptOutcome.DEAD if each.died else AttemptOutcome.FAILED,
                each.failure.error_type,
                each.failure.message[:MOST_MESSAGE],
            )
            for each in failed
        ]
        shared = _shared(work, [each.holder for each in failed])
        _append(work, "append_failures", shared, failures=rows)


def _shared(work: UnitOfWork, holders: Iterable[int | None]) -> dict[str, object]:
    """The fields that a tick's records share. `workers` are by the numbers of their streams."""
    workers = {
        holder: work.workers[holder].name
        for holder in set(holders)
        if holder is not None and holder in work.workers and work.workers[holder].name
    }
    return {"device": work.device, "finished_at": work.now, "workers": workers}


def _append(work: UnitOfWork, statement: str, shared: object, **parameters: object) -> None:
    last = append_records(work, HISTORY_LOG, statement, shared, **parameters)
    if last is not None:
        work.effects.logged = last
