"""The check of what fair shares add to the bodies of jobs."""

from typing import Any

from zq.features.fair.model import check_key, check_weight
from zq.model.job import NewJob


def take(sent: Any, job: NewJob) -> NewJob:
    """The job as it is, if the fair key and the weight of its body are valid.

    Raises `InvalidRequest`.
    """
    if sent.fair_key is not None:
        check_key("fair_key", sent.fair_key)
    if sent.fair_weight is not None:
        check_weight("fair_weight", sent.fair_weight)
    return job
