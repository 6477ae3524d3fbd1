"""One HTTP/2 connection: its events become requests, and handlers end with their streams."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, cast

from aiohttp import EMPTY_PAYLOAD, web
from aiohttp.abc import AbstractAccessLogger
from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError, StreamClosedError

from zq.http.answer import Answer
from zq.http.channel import Channel
from zq.http.endpoints import Response
from zq.http.gate import Gate
from zq.http.h2.abuse import Nuisance, Patience
from zq.http.h2.body import Body
from zq.http.h2.frames import MAX_STREAMS, Frames
from zq.http.h2.head import EMPTY_HEAD, BadHead, check_trailers, read_head
from zq.http.h2.outlet import Outlet
from zq.http.h2.stream import Http2Stream
from zq.http.problems import answer
from zq.model.clock import Clock, Timer
from zq.wire.codecs import JSON

log = logging.getLogger(__name__)

LINGER_S = 10.0
"""How long the rest of a body is taken in that nobody reads: what aiohttp allows in HTTP/1.1."""

Handler = Callable[[Any], Awaitable[Response]]


class Http2Connection(asyncio.Protocol):
    """Serves one connection. `on_lost` is called once it is gone.

    A head that has begun has `header_timeout` seconds to be whole. A connection without requests
    may rest.
    """

    transport: asyncio.Transport | None = None

    def __init__(
        self,
        server: web.Server,
        access_logger: AbstractAccessLogger | None,
        gate: Gate,
        clock: Clock,
        header_timeout: float,
        on_lost: Callable[[], object],
    ) -> None:
        self._server = server
        self._access_logger = access_logger
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._header_timer: Timer | None = None
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._patience = Patience(self._loop.time())
        self._running: dict[int, _Running] = {}
        """By stream: handlers that run. A stream that was reset is here until its handler ends."""
        self._lingering: dict[int, Timer] = {}
        """By stream: answered, while the body still comes."""
        self._prioritised: events.PriorityUpdated | None = None
        """Came with the last request: h2 tells of it again by itself."""
        self._leaving = False
        self._closed = False
        self._outlet: Outlet

    # What aiohttp's requests and readers ask of their protocol

    @property
    def connected(self) -> bool:
        """Whether there is a connection still."""
        return self.transport is not None

    def pause_reading(self) -> None:
        """The windows hold the peer back, stream by stream."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """As above."""

    def channel(self, request: web.BaseRequest) -> Channel:
        """The stream that answers a request."""
        stream: Any = request.writer
        channel: Http2Stream = stream
        return channel

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)
        self.ssl_context = transport.get_extra_info("sslcontext")
        self.peername = transport.get_extra_info("peername")
        self.sockname = transport.get_extra_info("sockname")
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._outlet = Outlet(self._frames, transport)
        self._frames.initiate_connection()
        self._outlet.flush()

    def data_received(self, data: bytes) -> None:
        if self._closed:
            return
        try:
            received = self._frames.receive_data(data)
        except ProtocolError as error:
            log.debug("bad HTTP/2", extra={"fields": {"error": str(error)}})
            self._close()
            return
        for event in received:
            react = _REACTIONS.get(type(event))
            if react is not None:
                react(self, event)
                if self._closed:
                    return
        self._watch_head()
        self._outlet.soon()

    def eof_received(self) -> None:
        # A stream ends with the peer's half-close, unsent bytes or not.
        if any(running.stream.streaming for running in self._running.values()):
            assert self.transport is not None
            self.transport.abort()

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self.transport = None
        for running in list(self._running.values()):
            running.cancel()
        self._outlet.resume()
        self._forget_head()
        for number in list(self._lingering):
            self._stop_lingering(number)
        self._on_lost()

    # The end of a connection

    async def shutdown(self, patience: float) -> None:
        """Take no more requests; end those that run after `patience` seconds; close."""
        if self._closed or self.transport is None:
            return
        self._leaving = True
        self._frames.close_connection()
        self._outlet.flush()
        await self._wait(patience)
        for running in list(self._running.values()):
            running.cancel()
        await self._wait(patience)
        self._closed = True
        self._outlet.flush()
        if self.transport is not None:
            self.transport.close()

    async def _wait(self, patience: float) -> None:
        if tasks := [running.task for running in self._running.values()]:
            await asyncio.wait(tasks, timeout=patience)

    def _close(self) -> None:
        """End everything, with a GOAWAY that is queued already."""
        self._closed = True
        for running in list(self._running.values()):
            running.cancel()
        self._outlet.finish()

    def _watch_head(self) -> None:
        """Let a head that has begun not take too long."""
        if not self._frames.in_head:
            self._forget_head()
        elif self._header_timer is None:
            self._header_timer = self._clock.call_later(self._header_timeout, self._give_up)

    def _forget_head(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        error = self._gate.too_slow()
        self._frames.close_connection(ErrorCodes.ENHANCE_YOUR_CALM, error.message.encode())
        self._close()

    def _count(self, nuisance: Nuisance) -> None:
        if not self._patience.spend(nuisance, self._loop.time()) and not self._closed:
            fields = {"peer": str(self.peername), "too many": nuisance.value}
            log.info("a connection is closed", extra={"fields": fields})
            self._frames.close_connection(ErrorCodes.ENHANCE_YOUR_CALM, nuisance.value.encode())
            self._close()

    # Requests

    def _request_received(self, event: events.RequestReceived) -> None:
        number = event.stream_id
        if self._leaving or len(self._running) + len(self._lingering) >= MAX_STREAMS:
            self._reset(number, ErrorCodes.REFUSED_STREAM)
            return
        assert self.transport is not None
        stream = Http2Stream(number, self._outlet, self.transport, self._cut_off)
        handler: Handler = self._server.request_handler
        head = EMPTY_HEAD
        try:
            head = read_head(tuple(event.headers))
        except BadHead as error:
            handler = _refusal(error)
        self._prioritised = event.priority_updated
        stream.bodiless = head.method == "HEAD"
        body = None
        if event.stream_ended is None:
            body = Body(self, number, self._acknowledge)
        factory: Any = self._server.request_factory
        request = factory(head, EMPTY_PAYLOAD if body is None else body, self, stream, None)
        task = self._loop.create_task(self._serve(stream, request, handler))
        self._running[number] = _Running(stream, body, task)
        task.add_done_callback(lambda task: self._served(number, task))

    async def _serve(self, stream: Http2Stream, request: web.BaseRequest, handler: Handler) -> None:
        started = self._loop.time()
        response = await handler(request)
        try:
            if not isinstance(response, Answer):
                await response.prepare(request)
                await response.write_eof()
            elif not response.sent:
                await stream.send(request, response)
        finally:
            if self._access_logger is not None:
                logged: Any = response
                self._access_logger.log(request, logged, self._loop.time() - started)

    def _served(self, number: int, task: asyncio.Task[None]) -> None:
        """A handler has ended, in one way or another."""
        stream, body, _ = self._running.pop(number)
        self._outlet.forget(stream)
        if body is not None:
            body.discard()
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.DEBUG if isinstance(error, ConnectionError) else logging.ERROR
            log.log(level, "a response failed", exc_info=error)
        if stream.gone or self.transport is None:
            return
        if not stream.ended:
            self._reset(number, ErrorCodes.INTERNAL_ERROR)
        elif body is not None and not body.is_eof():
            self._linger(number)

    def _linger(self, number: int) -> None:
        """Drop the rest of a body as it comes, though the answer is complete.

        Old clients (curl 7.88) take a reset at this point for a failure, and lose the answer.
        """
        reset = partial(self._stop_lingering, number, reset=True)
        self._lingering[number] = self._clock.call_later(LINGER_S, reset)

    def _stop_lingering(self, number: int, *, reset: bool = False) -> None:
        if timer := self._lingering.pop(number, None):
            timer.cancel()
            if reset:
                self._reset(number, ErrorCodes.NO_ERROR)

    def _cut_off(self, stream: Http2Stream) -> None:
        self._reset(stream.number, ErrorCodes.CANCEL)
        self._running[stream.number].cancel()

    def _reset(self, number: int, code: ErrorCodes) -> None:
        # The peer may have reset it too, in a frame that was read along with the one in hand.
        with contextlib.suppress(StreamClosedError):
            self._frames.reset_stream(number, code)
        self._outlet.soon()
        self._count(Nuisance.OUR_RESETS)

    def _acknowledge(self, number: int, size: int) -> None:
        """Let the peer send as much again."""
        if self.transport is not None and size:
            self._frames.acknowledge_received_data(size, number)
            self._outlet.soon()

    # Other events

    def _data_received(self, event: events.DataReceived) -> None:
        weight = event.flow_controlled_length
        running = self._running.get(event.stream_id)
        if running is None or running.body is None:
            self._acknowledge(event.stream_id, weight)
        else:
            running.body.receive(event.data, weight)
        if not event.data and event.stream_ended is None:
            self._count(Nuisance.IDLE_FRAMES)

    def _trailers_received(self, event: events.TrailersReceived) -> None:
        try:
            check_trailers(event.headers)
        except BadHead:
            if running := self._running.get(event.stream_id):
                self._reset(event.stream_id, ErrorCodes.PROTOCOL_ERROR)
                running.cancel()

    def _stream_ended(self, event: events.StreamEnded) -> None:
        self._stop_lingering(event.stream_id)
        running = self._running.get(event.stream_id)
        if running is not None and running.body is not None and not running.stream.gone:
            running.body.feed_eof()

    def _stream_reset(self, event: events.StreamReset) -> None:
        self._stop_lingering(event.stream_id)
        if running := self._running.get(event.stream_id):
            running.cancel()
        self._count(Nuisance.PEER_RESETS if event.remote_reset else Nuisance.OUR_RESETS)

    def _pinged(self, event: events.PingReceived) -> None:
        self._count(Nuisance.PINGS)

    def _settings_changed(self, event: events.RemoteSettingsChanged) -> None:
        self._count(Nuisance.SETTINGS)

    def _idle_frame(self, event: events.Event) -> None:
        if event is not self._prioritised:
            self._count(Nuisance.IDLE_FRAMES)


class _Running(NamedTuple):
    """A handler at work on a stream."""

    stream: Http2Stream
    body: Body | None
    task: asyncio.Task[None]

    def cancel(self) -> None:
        """Its stream is gone. What the handler has submitted lives on."""
        self.stream.gone = True
        self.task.cancel()


def _refusal(error: BadHead) -> Handler:
    async def refuse(request: Any) -> Response:
        return answer({"error": str(error)}, JSON, error.status)

    return refuse


_REACTIONS: dict[type[events.Event], Callable[[Http2Connection, Any], None]] = {
    events.RequestReceived: Http2Connection._request_received,
    events.DataReceived: Http2Connection._data_received,
    events.TrailersReceived: Http2Connection._trailers_received,
    events.StreamEnded: Http2Connection._stream_ended,
    events.StreamReset: Http2Connection._stream_reset,
    events.PingReceived: Http2Connection._pinged,
    events.RemoteSettingsChanged: Http2Connection._settings_changed,
    events.PriorityUpdated: Http2Connection._idle_frame,
    events.UnknownFrameReceived: Http2Connection._idle_frame,
}
