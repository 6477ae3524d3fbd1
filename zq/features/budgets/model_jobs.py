"""What jobs draw from budgets, and the commands about budgets."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from zq.features.budgets.model import BudgetPatch, BudgetPolicy, BudgetRequest, BudgetState, Draws
from zq.features.sweeps.model import SweepMark
from zq.model.commands import Command, JobsCommand
from zq.model.filters import Filter
from zq.model.job import JobRecord, JobSettings
from zq.model.reach import EVERYWHERE, Reach


def draws_in(options: JobSettings | None) -> Draws | None:
    """The draws of a job with these options; None if it draws from no budget."""
    if options is None:
        return None
    draws: Draws | None = options.budgets  # type: ignore[attr-defined]
    return draws


def drawing(draws: Draws) -> JobSettings:
    """The options of a job that only draws from budgets."""
    return JobSettings(budgets=draws)  # type: ignore[call-arg]


class CreateBudget(Command[BudgetState], frozen=True):
    """Create a budget. Returns it, `BudgetExists`, or `Unprocessable` if there are too many."""

    key: str
    policy: BudgetPolicy


class PutBudget(Command[BudgetState], frozen=True):
    """Create a budget or replace its policy. `Unprocessable` if jobs need more than it has."""

    key: str
    policy: BudgetPolicy


class ChangeBudget(Command[BudgetState], frozen=True):
    """Change a budget's policy field by field. Errors as for `PutBudget`, and `BudgetNotFound`."""

    key: str
    patch: BudgetPatch


class DeleteBudget(Command[None], frozen=True):
    """Delete a budget. `BudgetNotFound`, or `BudgetInUse` while jobs or cron templates need it."""

    key: str


class HoldBudget(Command[BudgetState], frozen=True):
    """Have a budget pay nothing for `for_ms` from now on. Returns it, or `BudgetNotFound`.

    A hold that lasts longer stays.
    """

    key: str
    for_ms: int


class ReopenBudget(Command[BudgetState], frozen=True):
    """End the hold of a budget. Returns it, or `BudgetNotFound`."""

    key: str


class Binding(msgspec.Struct, frozen=True):
    """A change of the draws of a job.

    `add` refuses a budget that the job draws from already, `change` and `remove` one that it does
    not draw from. `put` adds or changes. `replace` removes all other draws.
    """

    verb: Literal["add", "put", "change", "remove", "replace"]
    requests: tuple[BudgetRequest, ...] = ()


class BindJob(Command[JobRecord], frozen=True):
    """Change what one job draws. Messages call it `text_id`. Returns the changed job.

    The errors are `JobNotFound`, `Unprocessable`, `TooManyBudgets`, and those of `Binding`.
    """

    key: int
    text_id: str
    binding: Binding
    reach: Reach = EVERYWHERE


class Bound(msgspec.Struct, frozen=True):
    """How many jobs have changed draws, and which jobs keep theirs because they are in flight.

    `kept` counts others that keep theirs, by the codes of the reasons.
    """

    changed: int
    blocked: list[int]
    kept: Mapping[str, int] = {}


class BindSlice(JobsCommand[Bound], frozen=True):
    """A slice of a sweep: change the draws of those of `keys` that still match."""

    filter: Filter
    binding: Binding
    mark: SweepMark | None = None
