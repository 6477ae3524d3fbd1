"""Consumer groups: each is a queue that is a target of the topic's, and gets every message."""

from collections.abc import Sequence

from aiohttp import web

from zq.doors.queue_ti.http.bodies import GroupBody, MessageEndpoints
from zq.doors.queue_ti.http.problems import answer
from zq.features.targets.service import Targets
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.model.reach import EVERYWHERE
from zq.service.queues import Queues
from zq.service.services import Services

AT = "@"
"""Stands between a topic and a group in the name of the group's queue."""


def queue_of(topic: str, group: str | None) -> str:
    """The queue that holds the messages of a topic, or those of one of its groups."""
    check_name("topic", topic)
    if not group:
        return topic
    if AT in group:
        raise InvalidRequest(f"consumer_group must not contain {AT}")
    return check_name("consumer_group", f"{topic}{AT}{group}")


def topic_of(queue: str, group: str | None) -> str | None:
    """The topic of which a queue holds messages, for a group; None if they are another group's."""
    if not group:
        return queue
    topic, _, found = queue.rpartition(AT)
    return topic if topic and found == group else None


async def queues_of(topic: str, queues: Queues) -> tuple[str, ...]:
    """The queue of a topic, and those of its groups."""
    return (topic, *_targets((await queues.settings(topic, EVERYWHERE)).fan_out or (), topic))


async def topic_behind(queue: str, queues: Queues) -> str:
    """The topic of which a queue holds messages: its own, unless it is the queue of a group."""
    topic = queue.rpartition(AT)[0]
    return topic if topic and queue in await queues_of(topic, queues) else queue


def _targets(targets: Sequence[str], topic: str) -> list[str]:
    """The targets of a topic's queue that are consumer groups, in the order of their
    registration."""
    return [target for target in targets if target.rpartition(AT)[0] == topic]


class GroupsApi:
    """`/topics/{topic}/consumer-groups`."""

    def __init__(self, services: Services, endpoints: MessageEndpoints) -> None:
        self._queues, self._targets = services.queues, services[Targets]
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        groups = "/topics/{topic}/consumer-groups"
        register = self._endpoints.change(GroupBody, self.register)
        return [
            Route("GET", groups, self.every, KeyScope.READ),
            Route("POST", groups, register, KeyScope.MANAGE),
            Route("DELETE", groups + "/{group}", self.unregister, KeyScope.MANAGE),
        ]

    async def every(self, request: web.BaseRequest) -> Answer:
        """The groups of a topic, in the order of their registration."""
        topic = _topic(request)
        settings = await self._queues.settings(topic, reach_of(request))
        groups = [target.rpartition(AT)[2] for target in _targets(settings.fan_out or (), topic)]
        return answer({"items": groups})

    async def register(self, request: web.BaseRequest, sent: GroupBody) -> Answer:
        """Register a group. It gets the pending messages, and every new one."""
        if not sent.consumer_group:
            raise InvalidRequest("consumer_group is required")
        topic = _topic(request)
        target = queue_of(topic, sent.consumer_group)
        await self._targets.add(topic, target, reach_of(request))
        return Answer(201)

    async def unregister(self, request: web.BaseRequest) -> Answer:
        """Delete a consumer group and its messages."""
        topic = _topic(request)
        target = queue_of(topic, request[PATH]["group"])
        await self._targets.remove(topic, target, reach_of(request))
        return Answer(204)


def _topic(request: web.BaseRequest) -> str:
    return check_name("topic", request[PATH]["topic"])
