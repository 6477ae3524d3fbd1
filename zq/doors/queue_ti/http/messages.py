"""Messages of queue-ti over REST: into a topic, out of it, what becomes of each; the archive."""

import base64
import contextlib
from datetime import datetime

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from zq.doors.queue_ti.http.access import permit_of
from zq.doors.queue_ti.http.bodies import (
    DequeueBody,
    EnqueueBody,
    MessageEndpoints,
    ReplayBody,
    SettleBody,
)
from zq.doors.queue_ti.http.calls import Defaults, MessageCalls, MessagesWanted, NewMessage
from zq.doors.queue_ti.http.documents import (
    DLQ,
    SHOWN,
    MessagePage,
    answer,
    created_at,
    metadata_of,
    page_of,
    payload_of,
    rfc3339,
)
from zq.doors.queue_ti.http.topics import asked_topic, queues_of, topic_behind
from zq.doors.queue_ti.model import Action
from zq.features.archive.model import NotArchived, OutOfArchive
from zq.features.archive.service import Replays
from zq.features.sweeps.service_running import Sweeps
from zq.http.door import PATH, Ids, Route
from zq.http.guard import Guard, reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.model.errors import InvalidRequest, NotFound, Unprocessable, ZqError
from zq.model.filters import Filter, ValueRange
from zq.model.job import NO_EXTRAS, JobRecord
from zq.model.keys import KeyScope
from zq.model.lifecycle import Status
from zq.model.reach import Reach
from zq.service.services import Services


class MessagesApi:
    """`/messages`."""

    def __init__(
        self,
        services: Services,
        guard: Guard,
        endpoints: MessageEndpoints,
        answers: Answers,
        calls: MessageCalls,
        defaults: Defaults,
    ) -> None:
        self._jobs, self._listing = services.jobs, services.listing
        self._queues = services.queues
        self._guard = guard
        self._endpoints = endpoints
        self._answers = answers
        self._calls = calls
        self._defaults = defaults

    def routes(self) -> list[Route]:
        change = self._endpoints.change
        enqueue = self._endpoints.new_message(EnqueueBody, self.enqueue)
        dequeue = change(DequeueBody, self.dequeue)
        ack = change(SettleBody, self.ack, optional=True)
        nack = change(SettleBody, self.nack, optional=True)
        return [
            Route("POST", "/messages", enqueue, KeyScope.ENQUEUE),
            Route("GET", "/messages", self.page, KeyScope.READ),
            Route("POST", "/messages/dequeue", dequeue, KeyScope.TAKE),
            Route("POST", "/messages/{id}/ack", ack, KeyScope.TAKE),
            Route("POST", "/messages/{id}/nack", nack, KeyScope.TAKE),
            Route("POST", "/messages/{id}/requeue", self.requeue, KeyScope.MANAGE),
        ]

    async def enqueue(self, request: web.BaseRequest, sent: EnqueueBody) -> Answer:
        """Store a message, or give its content to the pending one with its key."""
        permit_of(request).require(Action.WRITE, sent.topic)
        if not sent.topic or not sent.payload:
            raise InvalidRequest("topic and payload are required")
        payload = msgspec.json.encode(sent.payload)
        new = NewMessage(sent.topic, payload, sent.metadata, sent.key)
        return answer({"id": await self._calls.enqueue(new, reach_of(request))}, 201)

    async def dequeue(self, request: web.BaseRequest, sent: DequeueBody) -> Answer:
        """Take up to `count` messages of a topic, at once."""
        group, permit = sent.consumer_group, permit_of(request)
        await self._calls.require_consuming(sent.topic, group, permit)
        if not sent.topic:
            raise InvalidRequest("topic is required")
        seconds = sent.visibility_timeout_seconds
        wanted = MessagesWanted(sent.topic, sent.count or 1, seconds, group)
        claiming = self._calls.claimer(wanted, reach_of(request))
        if sent.topic.endswith(DLQ) and group is None:
            reach_of(request).require([sent.topic])
            return answer({"messages": []})
        with claiming as claimer, self._guard.while_granted(request, claimer.give_up):
            jobs = await claimer.take()
            size = sum([job.payload_size for job in jobs])
            # Refused before payloads are read: then the jobs go back.
            self._answers.admit(size)
            with self._answers.room(size):
                readable = await self._calls.readable(jobs)
                documents = await self._calls.documents(readable, sent.topic)
                response = answer({"messages": documents})
                jobs.clear()
                # Written here, to hear of it where nobody is there to read it.
                await self._answers.write(request, response)
        return response

    async def ack(self, request: web.BaseRequest, sent: SettleBody) -> Answer:
        """Say that a message is done: it is gone."""
        id, group, reach = request[PATH]["id"], sent.consumer_group, reach_of(request)
        await self._calls.require_settling(id, group, reach, permit_of(request))
        await self._calls.ack(id, group, reach)
        return Answer(204)

    async def nack(self, request: web.BaseRequest, sent: SettleBody) -> Answer:
        """Say that a message failed: it is pending again, in its dead-letter topic, or failed."""
        id, group, reach = request[PATH]["id"], sent.consumer_group, reach_of(request)
        await self._calls.require_settling(id, group, reach, permit_of(request))
        await self._calls.nack(id, sent.error or "", group, reach)
        return Answer(204)

    async def requeue(self, request: web.BaseRequest) -> Answer:
        """Bring a message back from its dead-letter topic."""
        key, reach = self._calls.key(request[PATH]["id"]), reach_of(request)
        job = await self._jobs.get(key, reach)
        permit_of(request).require(Action.WRITE, job.queue)
        if job.extras is None or job.extras.origin is None:
            raise NotFound("the message is not a dead letter: only those can be requeued")
        topic = await topic_behind(job.extras.origin, self._queues)
        await self._jobs.send_home(key, reach, self._defaults.of(topic), yields=True)
        return Answer(204)

    async def page(self, request: web.BaseRequest) -> Answer:
        """A page of messages, the newest first."""
        topic = request.query.get("topic")
        # Who does not name a topic asks for all of them.
        permit_of(request).require(Action.READ, topic or "")
        topics = await queues_of(topic, self._queues) if topic else ()
        limit, offset = page_of(request)
        filter = Filter(statuses=SHOWN, queues=topics, reach=reach_of(request))
        total = await self._listing.count(filter)
        jobs = await self._listing.page_at(filter, offset, limit) if offset < total else []
        items = await self._calls.documents(jobs)
        return answer(MessagePage(items, total, limit, offset))


ARCHIVED = (Status.COMPLETED,)


class ArchivedDocument(msgspec.Struct):
    """An acknowledged message. Its payload is in base64."""

    id: str
    topic: str
    payload: str
    metadata: dict[str, str] | None
    retry_count: int
    created_at: str
    acked_at: str
    key: str | UnsetType = UNSET
    original_topic: str | UnsetType = UNSET


class ArchiveApi:
    """`/topics/{topic}/replay`, `/topics/{topic}/message-log`, and the archive reaper."""

    def __init__(
        self, services: Services, endpoints: MessageEndpoints, ids: Ids, defaults: Defaults
    ) -> None:
        self._listing, self._sweeps = services.listing, services[Sweeps]
        self._queues, self._replays = services.queues, services[Replays]
        self._clock = services.clock
        self._endpoints = endpoints
        self._ids = ids
        self._defaults = defaults

    def routes(self) -> list[Route]:
        log = "/topics/{topic}/message-log"
        replay = self._endpoints.change(ReplayBody, self.replay, optional=True)
        return [
            Route("POST", "/topics/{topic}/replay", replay, KeyScope.MANAGE),
            Route("GET", log, self.page, KeyScope.READ),
            Route("DELETE", log, self.trim, KeyScope.MANAGE),
            Route("POST", "/admin/archive-reaper/run", self.reap, KeyScope.MANAGE, whole=True),
        ]

    async def replay(self, request: web.BaseRequest, sent: ReplayBody) -> Answer:
        """Store acknowledged messages once more."""
        topic, text = asked_topic(request), sent.from_time or ""
        since = _time("from_time", text, Unprocessable) if text else None
        reach = reach_of(request)
        defaults = self._defaults.of(await topic_behind(topic, self._queues))
        copies = (await self._replays.replay(topic, since, reach, defaults)).changed
        for group in (await queues_of(topic, self._queues))[1:]:
            # One with a window of its own may have nothing from that time: its own replay says so.
            with contextlib.suppress(NotArchived, OutOfArchive):
                copies += (await self._replays.replay(group, since, reach, defaults)).changed
        return answer({"topic": topic, "enqueued": copies, "from_time": text})

    async def page(self, request: web.BaseRequest) -> Answer:
        """A page of acknowledged messages, the newest first."""
        queues = await queues_of(asked_topic(request), self._queues)
        filter = Filter(statuses=ARCHIVED, queues=queues).within(reach_of(request))
        filter.reach.require(filter.queues)
        limit, offset = page_of(request)
        total = await self._listing.count(filter)
        jobs = await self._listing.page_at(filter, offset, limit) if offset < total else []
        return answer(MessagePage([self._document(job) for job in jobs], total, limit, offset))

    async def trim(self, request: web.BaseRequest) -> Answer:
        """Delete what was acknowledged before a time."""
        if not request.query.get("before"):
            raise InvalidRequest("before is required: write a time such as 2026-01-31T12:00:00Z")
        before = _time("before", request.query["before"])
        queues = await queues_of(asked_topic(request), self._queues)
        deleted = await self._trim(queues, before, reach_of(request))
        return answer({"deleted": deleted})

    async def reap(self, request: web.BaseRequest) -> Answer:
        """Delete what is older than the windows of today. Older windows end by themselves."""
        deleted, now, reach = 0, self._clock.now_ms(), reach_of(request)
        for topic, settings in (await self._queues.all_settings(reach)).items():
            if settings.archived_ms:
                deleted += await self._trim((topic,), now - settings.archived_ms, reach)
        return answer({"deleted": deleted})

    async def _trim(self, queues: tuple[str, ...], before: int, reach: Reach) -> int:
        reach.require(queues)
        span = ValueRange(high=before - 1)
        filter = Filter(statuses=ARCHIVED, queues=queues, finished_at=span)
        return await self._sweeps.delete(filter.within(reach))

    def _document(self, job: JobRecord) -> ArchivedDocument:
        return ArchivedDocument(
            id=self._ids.text(job.key),
            topic=job.queue,
            payload=base64.b64encode(payload_of(job).encode()).decode(),
            metadata=metadata_of(job),
            retry_count=job.attempts - job.forgiven,
            created_at=created_at(job),
            acked_at=rfc3339(job.finished_at or 0),
            key=UNSET if job.unique_key is None else job.unique_key,
            original_topic=(job.extras or NO_EXTRAS).origin or UNSET,
        )


def _time(name: str, text: str, error: type[ZqError] = InvalidRequest) -> int:
    """A time of RFC 3339 in milliseconds. Raises an `error`."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            raise ValueError(text)
        return int(time.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise error(
            f"invalid {name} {text[:64]!r}: write a time such as 2026-01-31T12:00:00Z"
        ) from None
