"""The history of jobs: a record of each attempt that ends, in the transaction that ends it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from zq.model.history import AttemptOutcome
from zq.model.job import Job
from zq.model.log import Bounds
from zq.model.settling import Failure
from zq.store.log import append
from zq.store.work import Brief, Work, as_json

LOG = "history"

MOST_MESSAGE = 1024
"""Characters of an error message that are kept here; the job's own record of it has them all."""


class HistoryOptions(NamedTuple):
    """Whose history is kept, and how much of it."""

    device: str
    bounds: Bounds


class Failed(NamedTuple):
    """An attempt that has failed, and whether the job has died of it."""

    key: int
    holder: int | None
    died: bool
    failure: Failure


def record(work: Work, outcome: AttemptOutcome, jobs: Sequence[Brief | Job]) -> None:
    """Note that an attempt of each of these jobs has this outcome.

    To be called before their rows are changed or deleted: the attempt is as they tell it then.
    Nothing happens where no history is kept.
    """
    if work.device is not None and jobs:
        shared = _shared(work, [job.holder for job in jobs]) | {"outcome": outcome}
        keys = as_json([job.key for job in jobs])
        work.logged = append(work, LOG, "attempts", shared, keys=keys)


def record_failures(work: Work, failed: Sequence[Failed]) -> None:
    """The same for attempts that have failed, each with an outcome and an error of its own."""
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
        work.logged = append(work, LOG, "failures", shared, failures=as_json(rows))


def _shared(work: Work, holders: Iterable[int | None]) -> dict[str, object]:
    """What the records of a tick have in common; `workers` by the numbers of their streams."""
    workers = {
        holder: work.workers[holder]
        for holder in set(holders)
        if holder is not None and holder in work.workers
    }
    return {"device": work.device, "finished_at": work.now, "workers": workers}
