"""The commands about rows of the inbox."""

from collections.abc import Sequence
from typing import ClassVar

from zq.model.commands import Command, Enqueue


class TakeRows(Enqueue, frozen=True, kw_only=True):
    """Store the jobs of rows, and delete the rows in the same transaction.

    Its errors are those of `Enqueue`, and `RowsChanged`. They mean that nothing was stored.
    """

    rows: Sequence[int]


class RefuseRow(Command[None], frozen=True):
    """Note at a row why its job cannot be stored. The row stays until somebody changes it."""

    brings_more: ClassVar[bool] = False

    row: int
    reason: str
