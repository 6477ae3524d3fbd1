"""Topics of queue-ti: overrides, statistics, purges, reapers, schemas, and consumer groups."""

import asyncio
from collections.abc import Sequence

import msgspec
from aiohttp import web

from zq.doors.queue_ti.http.bodies import (
    GroupBody,
    MessageEndpoints,
    OverridesBody,
    PurgeBody,
    ScheduleBody,
    SchemaBody,
    throughput,
)
from zq.doors.queue_ti.http.documents import (
    DLQ,
    FOREVER_MS,
    STATUSES,
    answer,
    overrides,
    rfc3339,
    statistics,
)
from zq.features.archive.service_running import Cleaning
from zq.features.schemas.model import StoredSchema
from zq.features.schemas.service_running import Schemas
from zq.features.sweeps.model import SweepAuthor
from zq.features.sweeps.service_running import Sweeps
from zq.features.targets.service import Targets
from zq.http.door import PATH, Route
from zq.http.guard import actor_of, reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import InvalidRequest, NotFound
from zq.model.filters import Filter
from zq.model.keys import KeyScope
from zq.model.lifecycle import Status
from zq.model.names import check_name
from zq.model.patching import RetentionPatch
from zq.model.reach import EVERYWHERE
from zq.model.settings import QueueSettings, SettingsPatch
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
        groups = "/topics/{topic}/consumer-groups"
        register = self._endpoints.change(GroupBody, self.register)
        return [
            Route("GET", groups, self.every, KeyScope.READ),
            Route("POST", groups, register, KeyScope.MANAGE),
            Route("DELETE", groups + "/{group}", self.unregister, KeyScope.MANAGE),
        ]

    async def every(self, request: web.BaseRequest) -> Answer:
        """The groups of a topic, in the order of their registration."""
        topic = asked_topic(request)
        settings = await self._queues.settings(topic, reach_of(request))
        groups = [target.rpartition(AT)[2] for target in _targets(settings.fan_out or (), topic)]
        return answer({"items": groups})

    async def register(self, request: web.BaseRequest, sent: GroupBody) -> Answer:
        """Register a group. It gets the pending messages, and every new one."""
        if not sent.consumer_group:
            raise InvalidRequest("consumer_group is required")
        topic = asked_topic(request)
        target = queue_of(topic, sent.consumer_group)
        await self._targets.add(topic, target, reach_of(request))
        return Answer(201)

    async def unregister(self, request: web.BaseRequest) -> Answer:
        """Delete a consumer group and its messages."""
        topic = asked_topic(request)
        target = queue_of(topic, request[PATH]["group"])
        await self._targets.remove(topic, target, reach_of(request))
        return Answer(204)


def asked_topic(request: web.BaseRequest) -> str:
    return check_name("topic", request[PATH]["topic"])


READ, MANAGE = KeyScope.READ, KeyScope.MANAGE
PURGEABLE = ("pending", "processing", "expired")
NO_OVERRIDES = SettingsPatch(
    retry_limit=None,
    dead_letter_after=None,
    ttl_ms=None,
    max_depth=None,
    rate=None,
    retention=RetentionPatch(completed_ms=None),
    registered=None,
)


class TopicsApi:
    """`/topic-configs`, `/topics`, `/stats` and the reapers under `/admin`."""

    def __init__(self, services: Services, endpoints: MessageEndpoints) -> None:
        self._queues, self._sweeps, self._admin = services.queues, services[Sweeps], services.admin
        self._cleaning = services[Cleaning]
        self._endpoints = endpoints
        self._reported = 0
        """How many expiries have been told of."""
        self._turn = asyncio.Lock()
        """Held while overrides change: a topic and its groups have those of the same request."""

    def routes(self) -> list[Route]:
        own, topic, admin = "/topic-configs/{topic}", "/topics/{topic}", "/admin"
        replace = self._endpoints.change(OverridesBody, self.replace)
        purge = self._endpoints.change(PurgeBody, self.purge)
        reschedule = self._endpoints.change(ScheduleBody, self.reschedule)
        by_key = topic + "/messages/by-key/{key}"
        return [
            Route("GET", "/topic-configs", self.every, READ),
            Route("GET", own, self.get, READ),
            Route("PUT", own, replace, MANAGE),
            Route("DELETE", own, self.clear, MANAGE),
            Route("POST", topic + "/purge", purge, MANAGE),
            Route("DELETE", by_key, self.delete_by_key, MANAGE),
            Route("GET", "/stats", self.statistics, READ),
            Route("POST", admin + "/expiry-reaper/run", self.expire, MANAGE, whole=True),
            Route("POST", admin + "/delete-reaper/run", self.delete, MANAGE, whole=True),
            Route("GET", admin + "/delete-reaper/schedule", self.schedule, READ, whole=True),
            Route("PUT", admin + "/delete-reaper/schedule", reschedule, MANAGE, whole=True),
        ]

    async def every(self, request: web.BaseRequest) -> Answer:
        """The overrides of topics that have some."""
        every = await self._queues.all_settings(reach_of(request))
        shown = [overrides(topic, settings) for topic, settings in every.items()]
        return answer({"items": [document for document in shown if document is not None]})

    async def get(self, request: web.BaseRequest) -> Answer:
        """The overrides of one topic."""
        topic = asked_topic(request)
        document = overrides(topic, await self._queues.settings(topic, reach_of(request)))
        if document is None:
            raise NotFound(f"the topic {topic!r} has no overrides")
        return answer(document)

    async def replace(self, request: web.BaseRequest, sent: OverridesBody) -> Answer:
        """Set the overrides of a topic and its groups, and nothing else of their settings."""
        topic = asked_topic(request)
        if topic.endswith(DLQ):
            raise InvalidRequest(f"topic name may not end in {DLQ}")
        settings = await self._set(topic, _patch(sent), request)
        return answer(overrides(topic, settings) or {"topic": topic, "replayable": False})

    async def clear(self, request: web.BaseRequest) -> Answer:
        """Have a topic and its groups go by the defaults."""
        await self.get(request)
        await self._set(asked_topic(request), NO_OVERRIDES, request)
        return Answer(204)

    async def purge(self, request: web.BaseRequest, sent: PurgeBody) -> Answer:
        """Delete the messages of a topic that are in some states, which the body names."""
        if "?" in request.raw_path:
            raise InvalidRequest(
                "a purge reads no query, and would delete more than that says: name the states in"
                " the body, as `statuses`"
            )
        for status in sent.statuses or ():
            if status not in PURGEABLE:
                raise InvalidRequest(f"invalid status {status!r}: use {', '.join(PURGEABLE)}")
        named = sent.statuses or PURGEABLE
        statuses = tuple(status for name in PURGEABLE if name in named for status in STATUSES[name])
        queues = await queues_of(asked_topic(request), self._queues)
        return await self._delete(Filter(statuses=statuses, queues=queues), request)

    async def delete_by_key(self, request: web.BaseRequest) -> Answer:
        """Delete the messages of a topic with a key, whatever they are doing."""
        key = request[PATH]["key"]
        queues = await queues_of(asked_topic(request), self._queues)
        return await self._delete(Filter(queues=queues, unique_keys=(key,)), request)

    async def statistics(self, request: web.BaseRequest) -> Answer:
        """How many messages each topic has in each status."""
        reach, counts = reach_of(request), await self._queues.counts()
        seen = {place: n for place, n in counts.items() if reach.covers(place[0])}
        return answer({"topics": statistics(seen)})

    async def expire(self, request: web.BaseRequest) -> Answer:
        """Tell how many messages have expired since this was asked last: they do so by themselves.

        The count begins with the server.
        """
        await self._admin.ping()
        expired = self._admin.figures().jobs.expired
        news, self._reported = expired - self._reported, expired
        return answer({"expired": news})

    async def delete(self, request: web.BaseRequest) -> Answer:
        """Delete what has expired."""
        return await self._delete(Filter(statuses=(Status.EXPIRED,)), request)

    async def schedule(self, request: web.BaseRequest) -> Answer:
        """When expired messages are deleted."""
        schedule = self._cleaning.schedule
        return answer({"schedule": schedule, "active": bool(schedule)})

    async def reschedule(self, request: web.BaseRequest, sent: ScheduleBody) -> Answer:
        """Have expired messages deleted at other times; an empty schedule means never."""
        await self._cleaning.change(sent.schedule)
        return await self.schedule(request)

    async def _set(
        self, topic: str, patch: SettingsPatch, request: web.BaseRequest
    ) -> QueueSettings:
        """Patch the settings of a topic, then those of its groups. Return those of the topic."""
        reach = reach_of(request)
        async with self._turn:
            settings = await self._queues.set(topic, patch, reach)
            # The topic comes first: a group that is registered meanwhile begins with its settings.
            for group in (await queues_of(topic, self._queues))[1:]:
                await self._queues.set(group, patch, reach)
        return settings

    async def _delete(self, filter: Filter, request: web.BaseRequest) -> Answer:
        within = filter.within(reach_of(request))
        within.reach.require(within.queues)
        author = SweepAuthor(actor_of(request))
        return answer({"deleted": await self._sweeps.delete(within, author)})


def _patch(sent: OverridesBody) -> SettingsPatch:
    window = sent.replay_window_seconds
    archived_ms = (window * 1000 if window else FOREVER_MS) if sent.replayable else None
    retries, ttl = sent.max_retries, sent.message_ttl_seconds
    patch = SettingsPatch(
        retry_limit=None if retries is None else max(retries, 1) - 1,
        dead_letter_after=retries,
        ttl_ms=None if ttl is None else ttl * 1000,
        max_depth=sent.max_depth or None,
        rate=throughput(sent.throughput_limit),
        retention=RetentionPatch(completed_ms=archived_ms),
        registered=None,
    )
    # A topic that is to be known by its overrides needs one.
    return msgspec.structs.replace(patch, registered=True) if patch == NO_OVERRIDES else patch


class SchemaDocument(msgspec.Struct):
    """The schema of a topic."""

    topic: str
    schema_json: str
    version: int
    updated_at: str


class SchemasApi:
    """Schemas by topic."""

    def __init__(self, services: Services, endpoints: MessageEndpoints) -> None:
        self._schemas = services[Schemas]
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        own = "/topic-schemas/{topic}"
        return [
            Route("GET", "/topic-schemas", self.every, KeyScope.READ),
            Route("GET", own, self.get, KeyScope.READ),
            Route("PUT", own, self._endpoints.change(SchemaBody, self.put), KeyScope.MANAGE),
            Route("DELETE", own, self.drop, KeyScope.MANAGE),
        ]

    async def every(self, request: web.BaseRequest) -> Answer:
        """The schemas of all topics that have one."""
        found = await self._schemas.every(reach_of(request))
        return answer({"items": [_document(each) for each in found]})

    async def get(self, request: web.BaseRequest) -> Answer:
        """The schema of one topic."""
        return answer(_document(await self._schemas.get(asked_topic(request), reach_of(request))))

    async def put(self, request: web.BaseRequest, sent: SchemaBody) -> Answer:
        """Give a topic a schema: new messages have to match it."""
        stored = await self._schemas.put(asked_topic(request), sent.schema_json, reach_of(request))
        return answer(_document(stored))

    async def drop(self, request: web.BaseRequest) -> Answer:
        """Take the schema of a topic away."""
        await self._schemas.drop(asked_topic(request), reach_of(request))
        return Answer(204)


def _document(stored: StoredSchema) -> SchemaDocument:
    at = rfc3339(stored.updated_at)
    return SchemaDocument(stored.queue, stored.body, stored.version, at)
