"""The batches of jobs, and plans: made before a transaction, applied if they still hold."""

from collections.abc import Mapping

import msgspec

from zq.features.batches.model import BatchRule
from zq.model.commands import FoldPlan
from zq.model.job import Extras, JobRecord, NewJob


def batch_of(job: NewJob | JobRecord) -> BatchRule | None:
    """The batch that a job came with, whether it is open or not."""
    return batch_in(job.extras)


def batch_in(extras: Extras | None) -> BatchRule | None:
    """The batch of a job with these extras."""
    if extras is None:
        return None
    batch: BatchRule | None = extras.batch  # type: ignore[attr-defined]
    return batch


class HostPlace(msgspec.Struct, frozen=True, array_like=True):
    """The host of a batch, and how many commands have folded jobs into it."""

    host: int
    revision: int


class BatchPlan(FoldPlan, frozen=True):
    """The plan for an enqueue's jobs in batches. It is valid while `places` are up to date.

    `places` has the open host of each batch, or None if there is none. `copies` are the indexes of
    jobs that are copies by name, which neither fold nor become hosts.
    """

    places: Mapping[str, HostPlace | None]
    copies: frozenset[int] = frozenset()


class StalePlan(msgspec.Struct, frozen=True):
    """A plan is no longer valid, and nothing was done. The planner makes another one.

    No client sees this. `copies` are the indexes of the jobs that are copies by name, if the plan
    did not know them.
    """

    copies: frozenset[int] | None = None
