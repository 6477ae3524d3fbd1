"""Messages of queue-ti: into a topic, out of it, and what becomes of each."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from aiohttp import web

from zq.http.door import PATH, Ids, Route
from zq.http.guard import Guard, reach_of
from zq.http.queue_ti.bodies import DequeueBody, EnqueueBody, MessageEndpoints, SettleBody
from zq.http.queue_ti.documents import DLQ, SHOWN, MessageDocument, message
from zq.http.queue_ti.problems import answer
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.model.errors import InvalidRequest, JobNotFound, NotInFlight, PayloadTooLarge, TooLarge
from zq.model.filters import Filter
from zq.model.job import MAX_META, MAX_UINT32, Extras, JobRecord, NewJob
from zq.model.keys import KeyScope
from zq.model.leasing import MOST_CLAIMED, Terms
from zq.model.names import check_key, check_name
from zq.model.settings import QueueSettings
from zq.model.settling import Failure, bounded
from zq.model.unique import KeySpace, OnConflict, Scope
from zq.service import Services

TYPE = "queue-ti"
"""The type of the jobs that are messages."""

USUAL_PAGE, LARGEST_PAGE = 50, 200


class Defaults(NamedTuple):
    """What holds for topics without overrides; times in milliseconds. 0 means none of a thing."""

    max_retries: int
    dlq_threshold: int
    ttl_ms: int
    native_limit: int
    """The retry limit of jobs that came by another door."""

    def of(self, topic: str) -> QueueSettings:
        """The same as settings of a queue."""
        return QueueSettings(
            retry_limit=max(self.max_retries, 1) - 1,
            dead_letter=check_name("topic", topic + DLQ),
            dead_letter_after=self.dlq_threshold,
            ttl_ms=self.ttl_ms,
        )


class MessagesApi:
    """`/messages`."""

    def __init__(
        self,
        services: Services,
        guard: Guard,
        endpoints: MessageEndpoints,
        answers: Answers,
        ids: Ids,
        defaults: Defaults,
        max_payload: int,
    ) -> None:
        self._jobs, self._work = services.jobs, services.work
        self._listing, self._queues = services.listing, services.queues
        self._guard = guard
        self._endpoints = endpoints
        self._answers = answers
        self._ids = ids
        self._defaults = defaults
        self._max_payload = max_payload

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
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
        if not sent.topic or not sent.payload:
            raise InvalidRequest("topic and payload are required")
        if sent.topic.endswith(DLQ):
            raise InvalidRequest(f"topic name may not end in {DLQ}: messages come there by nacks")
        job = self._job(sent)
        defaults = self._defaults.of(sent.topic)
        stored = await self._jobs.enqueue([job], reach_of(request), defaults=defaults)
        key = stored.reply.joined.get(0, stored.keys[0])
        return answer({"id": self._ids.text(key)}, 201)

    async def dequeue(self, request: web.BaseRequest, sent: DequeueBody) -> Answer:
        """Take up to `count` messages of a topic, at once."""
        if not sent.topic:
            raise InvalidRequest("topic is required")
        most = sent.count or 1
        if not 1 <= most <= MOST_CLAIMED:
            raise InvalidRequest(f"count must be between 1 and {MOST_CLAIMED}")
        refuse_group(sent.consumer_group)
        topic, reach = check_name("topic", sent.topic), reach_of(request)
        reach.require([topic])
        if topic.endswith(DLQ):
            return answer({"messages": []})
        terms = Terms(_lease(sent.visibility_timeout_seconds), TYPE)
        with (
            self._work.claimer(topic, reach, most, terms, 0) as claimer,
            self._guard.while_granted(request, claimer.give_up),
        ):
            jobs = await claimer.take()
            size = sum([job.payload_size for job in jobs])
            # Refused before payloads are read: then the jobs go back.
            self._answers.admit(size)
            with self._answers.room(size):
                documents = await self._documents(await self._work.large_payloads(jobs))
                response = answer({"messages": documents})
                jobs.clear()
                # Written here, to hear of it where nobody is there to read it.
                await self._answers.write(request, response)
        return response

    async def ack(self, request: web.BaseRequest, sent: SettleBody) -> Answer:
        """Say that a message is done: it is gone."""
        refuse_group(sent.consumer_group)
        refused = await self._work.succeed([self._key(request)], reach_of(request))
        if refused.missing:
            raise NotInFlight
        return Answer(204)

    async def nack(self, request: web.BaseRequest, sent: SettleBody) -> Answer:
        """Say that a message failed: it is pending again, in its dead-letter topic, or failed."""
        refuse_group(sent.consumer_group)
        failure = bounded(Failure(sent.error or "", at_once=True))
        await self._work.fail(self._key(request), failure, reach_of(request))
        return Answer(204)

    async def requeue(self, request: web.BaseRequest) -> Answer:
        """Bring a message back from its dead-letter topic."""
        key, reach = self._key(request), reach_of(request)
        job = await self._jobs.get(key, reach)
        if job.extras is None or job.extras.origin is None:
            raise JobNotFound
        await self._jobs.send_home(key, reach, self._defaults.of(job.extras.origin))
        return Answer(204)

    async def page(self, request: web.BaseRequest) -> Answer:
        """A page of messages, the newest first."""
        query = request.query
        topics = (query["topic"],) if query.get("topic") else ()
        limit = min(_number(query.get("limit"), 1, USUAL_PAGE), LARGEST_PAGE)
        offset = _number(query.get("offset"), 0, 0)
        filter = Filter(statuses=SHOWN, queues=topics, reach=reach_of(request))
        total = await self._listing.count(filter)
        jobs = await self._listing.page_at(filter, offset, limit) if offset < total else []
        items = await self._documents(jobs)
        return answer({"items": items, "total": total, "limit": limit, "offset": offset})

    async def _documents(self, jobs: Sequence[JobRecord]) -> list[MessageDocument]:
        errors = await self._listing.last_errors(jobs)
        limit = self._defaults.native_limit
        return [message(job, self._ids, limit, errors.get(job.key, "")) for job in jobs]

    def _job(self, sent: EnqueueBody) -> NewJob:
        payload = msgspec.json.encode(sent.payload)
        if len(payload) > self._max_payload:
            raise PayloadTooLarge(
                f"the payload has {len(payload)} bytes, but at most {self._max_payload} are"
                " allowed: store large data elsewhere, or raise --max-payload"
            )
        return NewJob(
            check_name("topic", sent.topic),
            TYPE,
            payload.decode(),
            len(payload),
            unique_key=None if sent.key is None else check_key(sent.key),
            unique_while=None if sent.key is None else Scope.QUEUED,
            unique_in=KeySpace.ALL if sent.key is None else KeySpace.QUEUE,
            on_conflict=OnConflict.REPLACE_CONTENT,
            extras=None if sent.metadata is None else Extras(_meta(sent.metadata)),
        )

    def _key(self, request: web.BaseRequest) -> int:
        key = self._ids.key(request[PATH]["id"])
        if key is None:
            raise JobNotFound
        return key


def _meta(metadata: dict[str, str]) -> str:
    text = msgspec.json.encode(metadata)
    if len(text) > MAX_META:
        raise TooLarge(
            f"metadata has {len(text)} bytes, but at most {MAX_META} are allowed: put large data"
            " into the payload"
        )
    if any("\0" in part for pair in metadata.items() for part in pair):
        raise InvalidRequest("metadata must not contain NUL")
    return text.decode()


def refuse_group(name: str | None) -> None:
    """Raise `InvalidRequest` where a request is about a consumer group."""
    if name:
        raise InvalidRequest("consumer groups are not spoken here: leave consumer_group out")


def _lease(seconds: int | None) -> int | None:
    """How long the taker asks for; None leaves it to the job, its queue, or the engine."""
    return min(seconds * 1000, MAX_UINT32) if seconds is not None and seconds > 0 else None


def _number(text: str | None, least: int, usual: int) -> int:
    """A number of a query; what is none, or too small, is the usual one."""
    if text is None or not text.isdecimal() or len(text) > 15 or int(text) < least:
        return usual
    return int(text)
