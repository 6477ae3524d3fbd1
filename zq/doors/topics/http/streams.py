"""Streams of server-sent events in the `/v0` dialect: their head, their frames, their number."""

import base64
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from aiohttp import hdrs, web

from zq.doors.topics.errors import TopicLimitReached
from zq.doors.topics.http.problems import status_of
from zq.http.api.endpoints import NotAcceptable
from zq.http.guard import KEY, Guard
from zq.http.transport.answer import EXTRA_HEADERS
from zq.http.transport.channel import channel_of, leave_little_unsent, watch_for_end
from zq.http.transport.heartbeats import Heartbeats, HeartbeatTimer
from zq.model.clock import Clock
from zq.model.errors import ZqError

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
