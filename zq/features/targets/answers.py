"""What the verbs about targets of queues do."""

from zq.answers import Asked, VerbAnswers
from zq.features.targets import verbs
from zq.features.targets.service import Targets
from zq.features.targets.verbs import AddedJobs
from zq.model.names import check_name
from zq.verbs.verb import Deleted

ANSWERS = VerbAnswers()


@ANSWERS.to(verbs.ADD)
async def add(asked: Asked) -> AddedJobs:
    """Make a queue a target of another one: 201 with the number of jobs that it got.

    The first target gets the waiting jobs of the queue. A later one gets a twin of each job
    that another target has not finished.
    """
    return AddedJobs(await asked.services[Targets].add(*_names(asked), asked.reach))


@ANSWERS.to(verbs.REMOVE)
async def remove(asked: Asked) -> Deleted:
    """Let a target go, with its jobs and settings: 200 with the number of jobs it had."""
    return Deleted(await asked.services[Targets].remove(*_names(asked), asked.reach))


def _names(asked: Asked) -> tuple[str, str]:
    path = asked.path
    return check_name("queue", path["queue"]), check_name("target", path["target"])
