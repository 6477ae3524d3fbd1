"""Watch sessions of the `/v0` dialect: one stream tells of many topics."""

from typing import NamedTuple

from aiohttp import web

from zq.doors.topics.engine import TopicWatcher
from zq.doors.topics.http.bodies import (
    WATCH,
    TopicBodies,
    WatchBody,
    nodes_of,
    page_bytes,
    page_limit,
    sequence,
)
from zq.doors.topics.http.documents import Shown, record, tombstone
from zq.doors.topics.http.lifecycle import flag
from zq.doors.topics.http.problems import Stopwatch
from zq.doors.topics.http.streams import (
    Ends,
    EventStreams,
    FrameWriter,
    cursors_in,
    frame,
    id_of,
    refusing,
    require_events,
)
from zq.doors.topics.model import TopicPage
from zq.doors.topics.model_watching import SESSION_TTL_MS, WatchedTopic, WatchWanted
from zq.doors.topics.service_watches import Watches, WatchSession
from zq.http.door import PATH, Route
from zq.http.guard import KEY, reach_of
from zq.http.transport.answer import Answer
from zq.model.errors import Unauthorized, ZqError
from zq.model.keys import Key, KeyScope
from zq.service.services import Services

LONGEST_ID = 32 * 1024

SHORTEST_HEARTBEAT_MS, LONGEST_HEARTBEAT_MS = 1_000, 60_000


class _Terms(NamedTuple):
    """The owner of a session, and the form of its stream."""

    key: Key | None
    heartbeat_ms: int
    shown: Shown


class TopicWatchApi:
    """`/watch` and `/watch/{wid}`."""

    def __init__(self, services: Services, bodies: TopicBodies, streams: EventStreams) -> None:
        self._watches = services[Watches]
        self._bodies = bodies
        self._streams = streams

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("POST", "/watch", self.make, KeyScope.READ)]

    def streams(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint with a lasting answer."""
        return [Route("GET", "/watch/{wid}", self.follow, KeyScope.READ, token=True)]

    async def make(self, request: web.BaseRequest) -> Answer:
        """Create a session. With `?lenient=true` it leaves out topics that do not exist."""
        watch = Stopwatch()
        sent = await self._bodies.read(request, WATCH)
        lenient = flag(request, "lenient", usual=False)
        shown = Shown(sent.include_tags, sent.include_meta, sent.include_data)
        terms = _Terms(request.get(KEY), _heartbeat(sent.heartbeat_ms), shown)
        made = await self._watches.make(_wanted(sent), reach_of(request), terms, lenient=lenient)
        cursors = made.session.cursors
        topics = {
            name: {
                "from_seq": cursors[name],
                "head_seq": state.head_seq,
                "earliest_seq": state.earliest_seq,
            }
            for name, state in made.states.items()
        }
        document = {
            "wid": made.session.id,
            "stream_url": f"/v0/watch/{made.session.id}",
            "session_ttl_ms": SESSION_TTL_MS,
            "topics": topics,
        }
        return watch.answer(document)

    async def follow(self, request: web.BaseRequest) -> web.StreamResponse:
        """Stream what is new in a session's topics, from the place where its last stream ended.

        `Last-Event-ID` goes back to the event with this id. A second stream of a session ends the
        first one.
        """
        require_events(request)
        session = self._watches.session(request[PATH]["wid"])
        terms = session.owner
        assert isinstance(terms, _Terms)
        if terms.key != request.get(KEY):
            raise Unauthorized("another key has made this watch session: send that one")
        told = cursors_in(request.headers.get("Last-Event-ID", ""))
        with self._streams.one_more(request), self._watches.follow(session, told) as watcher:
            telling = _Telling(self._watches, session, watcher, terms.shown)
            ends = Ends(watcher.nudge, watcher.end)
            fields = {"stream": "watch", "topics": len(session.cursors)}
            return await self._streams.serve(request, ends, terms.heartbeat_ms, telling.run, fields)


class _Telling:
    """Tells one reader of a session what is new, a page at a time, at the pace of its peer."""

    def __init__(
        self, watches: Watches, session: WatchSession, watcher: TopicWatcher, shown: Shown
    ) -> None:
        self._watches = watches
        self._session = session
        self._watcher = watcher
        self._shown = shown
        self._behind = set(session.cursors)
        """Topics whose backlog the reader has not yet seen to its end."""

    async def run(self, writer: FrameWriter) -> None:
        """Run until the reader ends. Raises if its connection breaks."""
        try:
            while not self._watcher.ended:
                await self._watcher.wait()
                while not self._watcher.ended and (topic := self._watcher.take()) is not None:
                    if topic in self._session.cursors:
                        await self._tell(writer, topic)
                await writer.beat()
        except ZqError as error:
            await writer.write(refusing(error))

    async def _tell(self, writer: FrameWriter, topic: str) -> None:
        page = await self._watches.read(self._session, topic)
        if page is None:
            last = self._session.cursors.pop(topic)
            document = {"topic": topic, "head_seq": last, "reason": "deleted"}
            await writer.write(frame("topic-deleted", document, self._id()))
            return
        if page.loss is not None:
            document = {"topic": topic, **(tombstone(page.loss, page) or {})}
            await writer.write(frame("tombstone", document, self._id(topic, page.loss.last_seq)))
            self._session.cursors[topic] = page.loss.last_seq
        await self._show(writer, topic, page)
        if page.next_seq < page.head_seq:
            self._behind.add(topic)
            self._watcher.again(topic)
        elif topic in self._behind or page.records or page.loss is not None:
            self._behind.discard(topic)
            document = {"topic": topic, "head_seq": page.head_seq}
            await writer.write(frame("caught-up", document, self._id()))

    async def _show(self, writer: FrameWriter, topic: str, page: TopicPage) -> None:
        if page.records:
            document = {
                "topic": topic,
                "records": [record(each, self._shown) for each in page.records],
                "from_seq": self._session.cursors[topic],
                "to_seq": page.next_seq,
                "head_seq": page.head_seq,
            }
            await writer.write(frame("record", document, self._id(topic, page.next_seq)))
        self._session.cursors[topic] = page.next_seq

    def _id(self, topic: str | None = None, seq: int = 0) -> str | None:
        """The id of a frame after which the reader has come so far in a topic.

        A frame has none if no header could hold it. The session alone knows the place then.
        """
        cursors = self._session.cursors
        id = id_of(cursors if topic is None else {**cursors, topic: seq})
        return id if len(id) <= LONGEST_ID else None


def _wanted(sent: WatchBody) -> WatchWanted:
    topics = {
        name: WatchedTopic(sequence("from_seq", begin.from_seq), begin.tail)
        for name, begin in sent.topics.items()
    }
    return WatchWanted(
        topics, tuple(nodes_of(sent.node)), page_limit(sent.limit), page_bytes(sent.max_batch_bytes)
    )


def _heartbeat(sent: int) -> int:
    return min(max(sent, SHORTEST_HEARTBEAT_MS), LONGEST_HEARTBEAT_MS)
