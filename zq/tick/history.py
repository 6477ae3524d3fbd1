"""The history of jobs: one record for each attempt, in the transaction that ends the attempt.

The history is a log. Records are only appended, are numbered without gaps, and are removed by
retention. After a crash the end of an attempt and its record are both there, or neither is.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zq.model.history import HISTORY_LOG, AttemptOutcome
from zq.model.job import Brief, JobRecord
from zq.model.log import Bounds, Stored, outworn
from zq.model.settling import Failure
from zq.store.api import BYTES_A_ROW
from zq.tick.work import UnitOfWork

MOST_MESSAGE = 1024
"""Characters of an error message in a record. The job's own record has the whole message."""

TRIMMED = 64
"""So many batches are removed at a time, so that acknowledgements pass in between."""


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
        holder: work.workers[holder]
        for holder in set(holders)
        if holder is not None and holder in work.workers
    }
    return {"device": work.device, "finished_at": work.now, "workers": workers}


def _append(work: UnitOfWork, statement: str, shared: object, **parameters: object) -> None:
    """Append the records that a statement makes of the given jobs."""
    tx = work.tx
    stamp = {"log": HISTORY_LOG, "now": work.now}
    added = tx.rows_of(statement, **stamp, shared=shared, **parameters)
    if not added:
        return
    ((count, size),) = added
    tx.rows += 1 + size // BYTES_A_ROW
    grown = tx.rows_of("extend_log", **stamp, count=count, bytes=size)
    ((min_seq, max_seq, is_over),) = grown
    if max_seq - min_seq + 1 == count:
        work.retimed = True
    if is_over:
        _trim(work, HISTORY_LOG)
    work.effects.logged = max_seq


def trim_logs(work: UnitOfWork) -> None:
    """Remove records that are older than their retention."""
    for log in work.tx.names("to_be_trimmed", now=work.now):
        _trim(work, log)


def _trim(work: UnitOfWork, log: str) -> None:
    ((id, min_seq, max_seq, size, *bounds),) = work.tx.rows_of("extent", log=log)
    oldest = [Stored(*row) for row in work.tx.rows_of("oldest", id=id, limit=TRIMMED)]
    gone = oldest[: outworn(oldest, max_seq - min_seq + 1, size, Bounds(*bounds), work.now)]
    if gone:
        upto = gone[-1].last_seq
        work.tx.run("trim", id=id, upto=upto)
        work.tx.run("note_trim", id=id, upto=upto, bytes=sum(batch.size for batch in gone))
