"""What the holds of rooms say to jobs that come, or come back: see `zq.tick.hooks.Hold`."""

from collections.abc import Sequence
from typing import TypeVar

from zq.model.errors import Unprocessable
from zq.model.job import JobRecord, NewJob
from zq.model.reach import BudgetMaker
from zq.tick.work import UnitOfWork

H = TypeVar("H")


def hold_of(work: UnitOfWork, kind: type[H]) -> H:
    """The hold of a transaction that is of this kind. Raises `LookupError` if no room has one."""
    for hold in work.holds:
        if isinstance(hold, kind):
            return hold
    raise LookupError(f"this tick has no {kind.__name__}")


def refuse_new(
    work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None, place: str = "jobs"
) -> Unprocessable | None:
    """Why new jobs cannot be stored. If there are several, the message names one by its `place`."""
    for hold in work.holds:
        if (refusal := hold.refuse_new(jobs, maker, place)) is not None:
            return refusal
    return None


def admit_new(work: UnitOfWork, jobs: Sequence[NewJob], maker: BudgetMaker | None) -> None:
    """Create what new jobs bring along for themselves."""
    for hold in work.holds:
        hold.admit_new(work, jobs, maker)


def refuse_return(work: UnitOfWork, jobs: Sequence[JobRecord]) -> Unprocessable | None:
    """Why finished jobs cannot come back."""
    for hold in work.holds:
        if (refusal := hold.refuse_return(jobs)) is not None:
            return refusal
    return None


def is_held(work: UnitOfWork, job: JobRecord) -> bool:
    """True if a hold keeps a job from claims each time that it waits."""
    return any(hold.holds(job.options) for hold in work.holds)
