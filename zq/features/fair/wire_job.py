"""The check of what fair shares add to the bodies of jobs, and how documents show it."""

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


def _shown(key: str) -> str | None:
    """A fair key in a document, or in what a lane sends.

    The empty key, of jobs that lack the field of their queue's setting, is no key that a body may
    name. So a job is sent without it, and gets what the queue says there.
    """
    return key or None


SHOWN = {"fair_key": _shown}
