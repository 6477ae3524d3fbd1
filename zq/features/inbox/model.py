"""The commands about rows of the inbox, and their error."""

from collections.abc import Sequence
from typing import ClassVar

from zq.model.commands import Command, Enqueue
from zq.model.errors import Conflict


class RowsChanged(Conflict):
    """Somebody has deleted or changed rows since they were read."""

    def __init__(self) -> None:
        super().__init__("rows of the inbox were changed since they were read: read them again")


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
