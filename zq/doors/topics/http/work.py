"""GET /v0/topics/{topic}/work: the records of a queue as a stream, so many at a time."""

from aiohttp import web

from zq.doors.topics.http.documents import pushed
from zq.doors.topics.http.lifecycle import TOPIC, topic_of
from zq.doors.topics.http.streams import (
    Ends,
    EventStreams,
    FrameWriter,
    frame,
    refusing,
    require_events,
)
from zq.doors.topics.model import TopicState
from zq.doors.topics.model_jobs import check_node
from zq.doors.topics.service_queues import QueueTopics, RecordClaim
from zq.engine.delivery.windows import ClaimWindow
from zq.http.door import Route
from zq.http.guard import reach_of
from zq.model.errors import ZqError
from zq.model.job import MAX_TIME, MAX_UINT32
from zq.model.keys import KeyScope
from zq.model.leasing import MOST_CLAIMED
from zq.model.reach import Reach
from zq.service.services import Services
from zq.wire.query import whole_number

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
        """End the stream."""
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
