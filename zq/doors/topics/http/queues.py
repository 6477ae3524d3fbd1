"""Queue topics of the `/v0` dialect: records are claimed, and settled by their numbers."""

from typing import Any

from aiohttp import web

from zq.doors.topics.http.bodies import CLAIM, EXTEND, SETTLE, SettleSeqsBody, TopicBodies
from zq.doors.topics.http.documents import claimed
from zq.doors.topics.http.lifecycle import TOPIC, topic_of
from zq.doors.topics.http.problems import Stopwatch
from zq.doors.topics.model_jobs import Selection, check_node
from zq.doors.topics.service_queues import Decided, QueueTopics
from zq.http.door import Route
from zq.http.guard import Guard, reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.model.errors import InvalidRequest
from zq.model.keys import KeyScope
from zq.model.leasing import MOST_CLAIMED
from zq.service.services import Services


class QueueTopicsApi:
    """The requests of a queue topic's workers."""

    def __init__(
        self, services: Services, guard: Guard, bodies: TopicBodies, answers: Answers
    ) -> None:
        self._queues = services[QueueTopics]
        self._guard = guard
        self._bodies = bodies
        self._answers = answers

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("POST", f"{TOPIC}/claim", self.claim, KeyScope.TAKE),
            Route("POST", f"{TOPIC}/ack", self.ack, KeyScope.TAKE),
            Route("POST", f"{TOPIC}/nack", self.nack, KeyScope.TAKE),
            Route("POST", f"{TOPIC}/extend", self.extend, KeyScope.TAKE),
        ]

    async def claim(self, request: web.BaseRequest) -> Answer:
        """Lease up to `max` records to a node, at once."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, CLAIM)
        check_node(sent.node)
        name, reach = topic_of(request), reach_of(request)
        topic = await self._queues.get(name, reach)
        most = await self._queues.share(topic, min(max(sent.max, 1), MOST_CLAIMED))
        with (
            self._queues.claiming(topic, sent.node, most, sent.lease_ms, reach) as claim,
            self._guard.while_granted(request, claim.give_up),
        ):
            documents = [claimed(record) for record in await self._queues.take(claim)]
            after = await self._queues.get(name, reach)
            response = watch.answer(
                {
                    "topic": name,
                    "claimed": documents,
                    "count": len(documents),
                    "ready": after.ready,
                },
                throttle_wait_ms=0.0,
            )
            size = len(response.body)
            self._answers.admit(size)
            with self._answers.room(size):
                # Written here, to hear of it where nobody is there to read it.
                await self._answers.write(request, response)
        return response

    async def ack(self, request: web.BaseRequest) -> Answer:
        """Say that records are done."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, SETTLE)
        name = topic_of(request)
        told = await self._queues.ack(name, _selection(sent), reach_of(request))
        return _answer(watch, name, "acked", told)

    async def nack(self, request: web.BaseRequest) -> Answer:
        """Give records back, to be claimed again at once or after `delay_ms`."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, SETTLE)
        name = topic_of(request)
        told = await self._queues.nack(name, _selection(sent), sent.delay_ms, reach_of(request))
        return _answer(watch, name, "nacked", told)

    async def extend(self, request: web.BaseRequest) -> Answer:
        """Move the ends of leases to `lease_ms` from now."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, EXTEND)
        if sent.lease_ms is None:
            raise InvalidRequest("lease_ms is missing: say how long the leases are to last")
        name = topic_of(request)
        told = await self._queues.extend(name, _selection(sent), sent.lease_ms, reach_of(request))
        deadlines = {str(seq): told.deadline for seq in told.done}
        return _answer(watch, name, "extended", told, deadlines=deadlines)


def _selection(sent: SettleSeqsBody) -> Selection:
    return Selection(sent.node, sent.seqs, sent.lease_ids)


def _answer(watch: Stopwatch, topic: str, verb: str, told: Decided, **more: Any) -> Answer:
    document: dict[str, Any] = {
        "topic": topic,
        verb: len(told.done),
        "skipped": told.skipped,
        "ready": told.topic.ready,
        "in_flight": told.topic.in_flight,
        **more,
    }
    return watch.answer(document, fsync_ms=told.flush_ms)
