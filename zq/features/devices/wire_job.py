"""The address in bodies of jobs: it says in which queue a job waits."""

from typing import Any

from zq.features.devices.model import for_device
from zq.model.job import NewJob


def take(sent: Any, job: NewJob) -> NewJob:
    """The job, in the queue of its device if it is for one. Raises `InvalidRequest`."""
    return job if sent.to is None else for_device(job, sent.to)
