"""Streams of server-sent events in the `/v0` dialect, and watch sessions on many topics."""

import base64
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from aiohttp import hdrs, web

from zq.doors.topics.engine import TopicWatcher
from zq.doors.topics.errors import TopicLimitReached
from zq.doors.topics.http.bodies import (
    WATCH,
    TopicBodies,
    WatchBody,
    nodes_of,
    page_bytes,
    page_limit,
    sequence,
)
from zq.doors.topics.http.documents import Shown, Stopwatch, record, status_of, tombstone
from zq.doors.topics.http.topics import flag
from zq.doors.topics.model import SESSION_TTL_MS, TopicPage, WatchedTopic, WatchWanted
from zq.doors.topics.service import Watches, WatchSession
from zq.http.api.endpoints import NotAcceptable
from zq.http.door import PATH, Route
from zq.http.guard import KEY, Guard, reach_of
from zq.http.transport.answer import EXTRA_HEADERS, Answer
from zq.http.transport.channel import channel_of, leave_little_unsent, watch_for_end
from zq.http.transport.heartbeats import Heartbeats, HeartbeatTimer
from zq.model.clock import Clock
from zq.model.errors import Unauthorized, ZqError
from zq.model.keys import Key, KeyScope
from zq.service.services import Services

MEDIA_TYPE = "text/event-stream"
HEADERS = {
    "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
    "Cache-Control": "no-store",
    # Tells nginx, and similar proxies, to pass every frame on at once.
    "X-Accel-Buffering": "no",
}
RETRY = b"retry: 2000\n\n"

MOST_STREAMS, MOST_STREAMS_OF_KEY = 10_000, 1_000

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")

_encode = msgspec.json.Encoder().encode
_cursors = msgspec.json.Decoder(dict[str, int])


class Ends(NamedTuple):
    """How a stream is woken for a heartbeat, and how it is ended."""

    wake: Callable[[], object]
    end: Callable[[], object]


class FrameWriter:
    """Writes frames at the pace of the peer."""

    def __init__(self, response: web.StreamResponse, heartbeats: Heartbeats, clock: Clock) -> None:
        self._response = response
        self._heartbeats = heartbeats
        self._clock = clock

    async def write(self, data: bytes) -> None:
        """Write bytes. Return when the connection has room for more."""
        self._heartbeats.written()
        await self._response.write(data)

    async def beat(self, *, first: bool = False) -> None:
        """Write a heartbeat if one is due, or if it is the first one. It has no id."""
        if first or self._heartbeats.is_due:
            await self.write(f": hb {self._clock.now_ms()}\n\n".encode())


class EventStreams:
    """Serves streams, as many as there may be at a time."""

    def __init__(self, guard: Guard, clock: Clock, timer: HeartbeatTimer) -> None:
        self._guard = guard
        self._clock = clock
        self._timer = timer
        self._open: Counter[str | None] = Counter()

    def __len__(self) -> int:
        return self._open.total()

    @contextlib.contextmanager
    def one_more(self, request: web.BaseRequest) -> Iterator[None]:
        """Count a stream within the block. Raises `TopicLimitReached`."""
        key = request.get(KEY)
        name = None if key is None else key.name
        if len(self) >= MOST_STREAMS:
            raise _too_many("max_sse_connections", MOST_STREAMS)
        if name is not None and self._open[name] >= MOST_STREAMS_OF_KEY:
            raise _too_many("max_sse_connections_per_key", MOST_STREAMS_OF_KEY)
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            if not self._open[name]:
                del self._open[name]

    async def serve(
        self,
        request: web.BaseRequest,
        ends: Ends,
        heartbeat_ms: int,
        tell: Callable[[FrameWriter], Awaitable[None]],
        fields: dict[str, Any],
    ) -> web.StreamResponse:
        """Send the head of a stream, then what `tell` writes. The key of the request may end it."""
        response = web.StreamResponse(headers={**HEADERS, **request.get(EXTRA_HEADERS, {})})
        await response.prepare(request)
        channel = channel_of(request)
        if request.method == "HEAD" or channel.transport is None:
            return response
        leave_little_unsent(request)
        with watch_for_end(channel), self._guard.while_granted(request, ends.end):
            heartbeats = self._timer.begin(channel, ends.wake, fields, heartbeat_ms / 1000)
            try:
                writer = FrameWriter(response, heartbeats, self._clock)
                await writer.write(RETRY)
                await writer.beat(first=True)
                await tell(writer)
            finally:
                heartbeats.stop()
        return response


def require_events(request: web.BaseRequest) -> None:
    """Raise `NotAcceptable` for a client that wants no server-sent events."""
    accept = request.headers.get(hdrs.ACCEPT, "*/*").lower()
    if not any(kind in accept for kind in (MEDIA_TYPE, "text/*", "*/*")):
        raise NotAcceptable([MEDIA_TYPE])


def frame(event: str, document: object, id: str | None = None) -> bytes:
    """An event in the form of server-sent events."""
    head = "" if id is None else f"id: {id}\n"
    # Between two tokens of JSON that somebody has sent there may be ends of lines.
    data = _encode(document).translate(_ONE_LINE)
    return f"{head}event: {event}\ndata: ".encode() + data + b"\n\n"


def refusing(error: ZqError) -> bytes:
    """The last event of a stream that cannot go on."""
    return frame("error", {"code": status_of(error), "error": error.message})


def id_of(cursors: Mapping[str, int]) -> str:
    """How far a reader has come in each topic, as the id of a frame."""
    return base64.urlsafe_b64encode(_encode(cursors)).rstrip(b"=").decode()


def cursors_in(id: str) -> dict[str, int]:
    """The cursors in the id of a frame. An id that is none of ours says nothing."""
    try:
        return _cursors.decode(base64.urlsafe_b64decode(id + "=" * (-len(id) % 4)))
    except (ValueError, msgspec.MsgspecError):
        return {}


def _too_many(limit: str, most: int) -> TopicLimitReached:
    return TopicLimitReached(
        limit, most, f"there are {most} streams already: close some, or try again later"
    )


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
        self._wanted = session.wanted
        # A reader that another has replaced may still be within a read, and moves these alone.
        self._cursors = session.cursors
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
                    if topic in self._cursors:
                        await self._tell(writer, topic)
                await writer.beat()
        except ZqError as error:
            await writer.write(refusing(error))

    async def _tell(self, writer: FrameWriter, topic: str) -> None:
        page = await self._watches.read(self._wanted, topic, self._cursors[topic])
        if page is None:
            last = self._cursors.pop(topic)
            document = {"topic": topic, "head_seq": last, "reason": "deleted"}
            await writer.write(frame("topic-deleted", document, self._id()))
            return
        if page.loss is not None:
            document = {"topic": topic, **(tombstone(page.loss, page) or {})}
            await writer.write(frame("tombstone", document, self._id(topic, page.loss.last_seq)))
            self._cursors[topic] = page.loss.last_seq
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
                "from_seq": self._cursors[topic],
                "to_seq": page.next_seq,
                "head_seq": page.head_seq,
            }
            await writer.write(frame("record", document, self._id(topic, page.next_seq)))
        self._cursors[topic] = page.next_seq

    def _id(self, topic: str | None = None, seq: int = 0) -> str | None:
        """The id of a frame after which the reader has come so far in a topic.

        A frame has none if no header could hold it. The session alone knows the place then.
        """
        cursors = self._cursors
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
