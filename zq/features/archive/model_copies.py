"""The command that stores copies of completed jobs."""

from collections.abc import Sequence
from typing import ClassVar

from zq.model.commands import Command, Entered, SyncRule
from zq.model.job import NewJob
from zq.model.reach import Reach
from zq.model.settings import QueueSettings


class StoreCopies(Command[Entered], frozen=True):
    """Store new jobs in order, each by itself. Those that may not be stored are left out.

    The error is `QueueFull`: the jobs before the one without room are stored. The other fields are
    as in an `Enqueue`.
    """

    brings_more: ClassVar[bool] = True
    comes_last: ClassVar[bool] = True
    sync: ClassVar[SyncRule] = SyncRule.ENQUEUES
    items: ClassVar[str | None] = "jobs"
    has_size: ClassVar[bool] = True

    keys: Sequence[int]
    jobs: Sequence[NewJob]
    now: int
    size: int
    reach: Reach
    defaults: QueueSettings | None
