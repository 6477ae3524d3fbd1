"""Queue topics of the `/v0` dialect: records are claimed or streamed, and settled by number."""

from typing import Any

from aiohttp import web

from zq.doors.topics.http.bodies import CLAIM, EXTEND, SETTLE, SettleSeqsBody, TopicBodies
from zq.doors.topics.http.documents import Stopwatch, claimed, pushed
from zq.doors.topics.http.streams import (
    Ends,
    EventStreams,
    FrameWriter,
    frame,
    refusing,
    require_events,
)
from zq.doors.topics.http.topics import TOPIC, topic_of
from zq.doors.topics.model import TopicState
from zq.doors.topics.model_jobs import Selection, check_node
from zq.doors.topics.service_queues import Decided, QueueTopics, RecordClaim
from zq.engine.delivery.windows import ClaimWindow
from zq.http.door import Route
from zq.http.guard import Guard, reach_of
from zq.http.transport.answer import Answer
from zq.http.transport.answers import Answers
from zq.model.errors import InvalidRequest, ZqError
from zq.model.job import MAX_TIME, MAX_UINT32
from zq.model.keys import KeyScope
from zq.model.leasing import MOST_CLAIMED
from zq.model.reach import Reach
from zq.service.services import Services
from zq.wire.query import whole_number


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


HEARTBEAT_MS = 15_000
LONG_MS = 3_600_000
"""How long a claim waits for the next record. Then it is made again."""


class TopicWorkApi:
    """The stream of records that are leased to a node."""

    def __init__(self, services: Services, streams: EventStreams) -> None:
        self._queues = services[QueueTopics]
        self._streams = streams
        self._open: set[_Worker] = set()
        services.engine.when_let_go.append(self._end_all)

    def streams(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint with a lasting answer."""
        return [Route("GET", f"{TOPIC}/work", self.work, KeyScope.TAKE, token=True)]

    async def work(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send a node its next record whenever fewer than `max` of those sent are open.

        Those that are open when the stream ends go back at once. An event `error` tells why the
        server ends it.
        """
        values = request.query
        node, name, reach = values.get("node", ""), topic_of(request), reach_of(request)
        check_node(node)
        most = min(max(whole_number("max", values.get("max", "1"), MAX_UINT32), 1), MOST_CLAIMED)
        lease = values.get("lease_ms")
        lease_ms = None if lease is None else whole_number("lease_ms", lease, MAX_TIME)
        require_events(request)
        await self._queues.get(name, reach)
        with self._streams.one_more(request):
            worker = _Worker(self._queues, name, node, ClaimWindow(most), lease_ms, reach)
            self._open.add(worker)
            try:
                fields = {"stream": "work", "topic": name, "node": node}
                ends = Ends(worker.nudge, worker.end)
                with self._queues.until_dropped(name, worker.look_again):
                    return await self._streams.serve(
                        request, ends, HEARTBEAT_MS, worker.run, fields
                    )
            finally:
                self._open.discard(worker)
                worker.leave()

    def _end_all(self) -> None:
        for worker in self._open:
            worker.end()


class _Worker:
    """One node on one connection, and what it holds of what came over it."""

    def __init__(
        self,
        queues: QueueTopics,
        topic: str,
        node: str,
        window: ClaimWindow,
        lease_ms: int | None,
        reach: Reach,
    ) -> None:
        self._queues = queues
        self._topic = topic
        self._node = node
        self._window = window
        self._lease_ms = lease_ms
        self._reach = reach
        self._claim: RecordClaim | None = None
        self._leases: dict[int, int] = {}
        """Deliveries that came over this connection, by key."""
        self._looked = True
        """True if it has looked at its topic since that was deleted last."""

    def nudge(self) -> None:
        """Let it look whether a heartbeat is due."""
        if self._claim is not None:
            self._claim.give_up()
        self._window.nudge()

    def look_again(self) -> None:
        """Have it look at its topic, which was deleted."""
        self._looked = False
        self.nudge()

    def end(self) -> None:
        self._window.end()
        self.nudge()

    def leave(self) -> None:
        """Give back what the node still holds."""
        held = self._window.held & self._leases.keys()
        self._queues.give_back({key: self._leases[key] for key in held})

    async def run(self, writer: FrameWriter) -> None:
        """Run until it is ended, or its topic is no queue any more. Raises if its connection
        breaks.
        """
        try:
            while not self._window.ended:
                self._looked = True
                topic = await self._queues.get(self._topic, self._reach)
                if not self._looked:
                    continue
                if self._window.room <= 0:
                    await self._window.wait()
                else:
                    await self._send_next(writer, topic)
                await writer.beat()
        except ZqError as error:
            await writer.write(refusing(error))

    async def _send_next(self, writer: FrameWriter, topic: TopicState) -> None:
        """Claim as many records as there is room for, and send them."""
        claiming = self._queues.claiming(
            *(topic, self._node, self._window.room, self._lease_ms, self._reach), self._window
        )
        with claiming as self._claim:
            records = await self._queues.take(self._claim, LONG_MS)
            held = self._window.held
            self._leases = {key: n for key, n in self._leases.items() if key in held}
            for record in records:
                self._leases[record.job.key] = record.job.deliveries
                document = pushed(self._topic, record)
                await writer.write(frame("job", document, str(record.labels.seq)))
        self._claim = None
