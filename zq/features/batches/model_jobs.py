"""The batches of jobs."""

from zq.features.batches.model import BatchRule
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
