"""The verbs about targets of queues. A slash in a name is written `%2F` in the path."""

import msgspec

from zq.answers import Asked, VerbAnswers
from zq.features.targets.service import Targets
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.verbs import Deleted, Verb


class AddedJobs(msgspec.Struct):
    """How many jobs a queue got."""

    added: int


_TARGET = "/queues/{queue}/targets/{target}"
_REFUSED = {
    409: "It is a target already, would have targets itself, would lead dead letters in a circle,"
    " or has to wait for a group in flight.",
    429: "More jobs wait than its `max_depth` allows.",
}
_NO_TARGET = {404: "There is no such target."}

ADD = Verb("PUT", _TARGET, KeyScope.MANAGE, AddedJobs, refusals=_REFUSED, created=True)
REMOVE = Verb("DELETE", _TARGET, KeyScope.MANAGE, Deleted, refusals=_NO_TARGET)


ANSWERS = VerbAnswers()


@ANSWERS.to(ADD)
async def add(asked: Asked) -> AddedJobs:
    """Make a queue a target of another one: 201 with the number of jobs that it got.

    The first target gets the waiting jobs of the queue. A later one gets a twin of each job
    that another target has not finished.
    """
    return AddedJobs(await asked.services[Targets].add(*_names(asked), asked.reach))


@ANSWERS.to(REMOVE)
async def remove(asked: Asked) -> Deleted:
    """Let a target go, with its jobs and settings: 200 with the number of jobs it had."""
    return Deleted(await asked.services[Targets].remove(*_names(asked), asked.reach))


def _names(asked: Asked) -> tuple[str, str]:
    path = asked.path
    return check_name("queue", path["queue"]), check_name("target", path["target"])
