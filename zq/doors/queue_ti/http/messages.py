"""Messages of queue-ti over REST: into a topic, out of it, and what becomes of each."""

import msgspec
from aiohttp import web

from zq.doors.queue_ti.http.auth.access import permit_of
from zq.doors.queue_ti.http.bodies import DequeueBody, EnqueueBody, MessageEndpoints, SettleBody
from zq.doors.queue_ti.http.calls import Defaults, MessageCalls, MessagesWanted, NewMessage
from zq.doors.queue_ti.http.documents import DLQ, SHOWN
from zq.doors.queue_ti.http.groups import queues_of, topic_behind
from zq.doors.queue_ti.http.pages import MessagePage, page_of
from zq.doors.queue_ti.http.problems import answer
from zq.doors.queue_ti.model import Action
from zq.http.door import PATH, Route
from zq.http.guard import Guard, reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.model.errors import InvalidRequest, NotFound
from zq.model.filters import Filter
from zq.model.keys import KeyScope
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
