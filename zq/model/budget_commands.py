"""The commands about budgets, as those of `zq.model.commands` are about all else."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from zq.model.budgets import BudgetPatch, BudgetPolicy, BudgetRequest, BudgetState
from zq.model.commands import Command
from zq.model.filters import Filter
from zq.model.job import JobRecord
from zq.model.reach import EVERYWHERE, Reach


class CreateBudget(Command[BudgetState], frozen=True):
    """Create a budget. It, `BudgetExists`, or `Unprocessable` where there are too many."""

    key: str
    policy: BudgetPolicy


class PutBudget(Command[BudgetState], frozen=True):
    """Create a budget or give it another policy; `Unprocessable` where jobs need more than that."""

    key: str
    policy: BudgetPolicy


class ChangeBudget(Command[BudgetState], frozen=True):
    """Change a budget's policy field by field. As `PutBudget`, or `BudgetNotFound`."""

    key: str
    patch: BudgetPatch


class DeleteBudget(Command[None], frozen=True):
    """Delete a budget. `BudgetNotFound`, or `BudgetInUse` while jobs or cron templates need it."""

    key: str


class Binding(msgspec.Struct, frozen=True):
    """A change of what jobs draw.

    `add` refuses what a job draws from already, `change` and `remove` what it does not; `put` adds
    or changes; `replace` lets it draw from nothing else.
    """

    verb: Literal["add", "put", "change", "remove", "replace"]
    requests: tuple[BudgetRequest, ...] = ()


class BindJob(Command[JobRecord], frozen=True):
    """Change what one job draws, named `text_id` in messages. The job as it is then.

    It answers `JobNotFound`, `Unprocessable`, or what `Binding` refuses.
    """

    key: int
    text_id: str
    binding: Binding
    reach: Reach = EVERYWHERE


class Bound(msgspec.Struct, frozen=True):
    """How many jobs draw otherwise than before, and which cannot, for they are in flight."""

    changed: int
    blocked: list[int]


class BindSlice(Command[Bound], frozen=True):
    """A slice of a sweep: change what those of `keys` draw that still match."""

    keys: Sequence[int]
    filter: Filter
    binding: Binding
