"""The rules for the batch in the body of a job."""

from typing import Any

from zq.features.batches.model import check_rule
from zq.model.errors import InvalidRequest
from zq.model.job import NewJob


def take(sent: Any, job: NewJob) -> NewJob:
    """A new job as it is, unless its batch cannot be. Raises `InvalidRequest`."""
    if sent.batch is not None:
        if job.unique_key is not None:
            raise InvalidRequest("unique_key and batch cannot be combined")
        check_rule(sent.batch)
    return job
