"""The address in bodies of jobs: it says in which queue a job waits."""

from typing import Any

import msgspec

from zq.features.devices.model import queue_to
from zq.model.job import NewJob


def take(sent: Any, job: NewJob) -> NewJob:
    """The job, in the queue of its device if it is for one. Raises `InvalidRequest`."""
    if sent.to is None:
        return job
    return msgspec.structs.replace(job, queue=queue_to(sent.to, job.queue))
