"""One HTTP/2 connection: its events become requests, and handlers end with their streams."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from aiohttp import web
from aiohttp.abc import AbstractAccessLogger
from aiohttp.streams import EMPTY_PAYLOAD

from zq.http.transport.abuse import WINDOWS_PER_FRAME, AbuseLimits, Nuisance
from zq.http.transport.answer import Answer, Responder, Response
from zq.http.transport.channel import Channel
from zq.http.transport.gate import Gate
from zq.http.transport.h2.codec import MAX_STREAMS, BadPeer, ErrorCode, Field, MakeCodec
from zq.http.transport.h2.frames import Frame, Splitter, cost_of, nuisance_of
from zq.http.transport.h2.head import (
    EMPTY_HEAD,
    BadHead,
    announced_size,
    check_trailers,
    read_head,
)
from zq.http.transport.h2.outlet import Outlet
from zq.http.transport.h2.stream import Body, Http2Stream
from zq.http.transport.turns import LoopTurns, Share
from zq.model.clock import Clock, Timer

log = logging.getLogger(__name__)

LINGER_S = 10.0
"""How long the unread rest of a body is received and dropped, as aiohttp does in HTTP/1.1."""

Handler = Callable[[Any], Awaitable[Response]]


class Http2Connection(asyncio.Protocol):
    """Serves one connection. `on_lost` is called once it is gone.

    A head must be complete `header_timeout` seconds after it began. A connection may stay idle
    between requests.
    """

    transport: asyncio.Transport | None = None

    def __init__(
        self,
        server: web.Server,
        responder: Responder,
        access_logger: AbstractAccessLogger | None,
        gate: Gate,
        clock: Clock,
        turns: LoopTurns,
        header_timeout: float,
        make_codec: MakeCodec,
        on_lost: Callable[[], object],
    ) -> None:
        self._server = server
        self._responder = responder
        self._access_logger = access_logger
        self._gate = gate
        self._clock = clock
        self._header_timeout = header_timeout
        self._header_timer: Timer | None = None
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._splitter = Splitter()
        self._turns = turns
        self._share = Share(turns, self)
        self._codec = make_codec(self)
        self._patience = AbuseLimits(self._loop.time())
        self._running: dict[int, _Running] = {}
        """The running handlers, by stream. A reset stream stays here until its handler ends."""
        self._lingering: dict[int, Timer] = {}
        """Streams that are answered while their bodies still arrive."""
        self._leaving = False
        self._closed = False
        self._outlet: Outlet

    # Called by aiohttp's requests and readers

    @property
    def connected(self) -> bool:
        """True if the connection still exists."""
        return self.transport is not None

    def pause_reading(self) -> None:
        """Do nothing: the windows hold the peer back, stream by stream."""

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Do nothing, for the same reason."""

    def channel(self, request: web.BaseRequest) -> Channel:
        """The stream that answers a request."""
        stream: Any = request.writer
        channel: Http2Stream = stream
        return channel

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)
        self.ssl_context = transport.get_extra_info("sslcontext")
        self.peername = transport.get_extra_info("peername")
        self.sockname = transport.get_extra_info("sockname")
        connection: socket.socket | None = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._outlet = Outlet(self._codec, transport)
        self._codec.start()
        self._outlet.flush()

    def data_received(self, data: bytes) -> None:
        if not self._closed:
            self._splitter.feed(data)
            self._share.work()

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
        self._share.end()
        for running in self._running.values():
            running.stream.gone = True
            self._turns.cancel(running.task)
        self._outlet.resume()
        self._forget_head()
        for number in list(self._lingering):
            self._stop_lingering(number)
        self._on_lost()

    # Called by the connection's share of the loop

    def go_on(self, most: int) -> int:
        frames, cost = self._splitter.split(most, cost_of)
        for frame in frames:
            if (nuisance := nuisance_of(frame)) is not None and not self._count(*nuisance):
                return cost
        self._read(frames)
        return cost

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._lingering

    def has_more(self) -> bool:
        return not self._closed and self._splitter.has_whole

    def hold(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def release(self) -> None:
        if self.transport is not None:
            self.transport.resume_reading()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _read(self, frames: Sequence[Frame]) -> None:
        try:
            self._codec.receive(frames)
        except BadPeer as error:
            log.debug("bad HTTP/2", extra={"fields": {"error": str(error)}})
            self._close()
        if self._splitter.endless_head:
            self._calm("CONTINUATION frames")
        if not self._closed:
            self._watch_head()
            self._outlet.soon()

    # The end of a connection

    async def shutdown(self, patience: float) -> None:
        """Take no more requests, end the running ones after `patience` seconds, and close."""
        if self._closed or self.transport is None:
            return
        self._leaving = True
        await self._wait(patience)
        for running in list(self._running.values()):
            running.cancel()
        await self._wait(patience)
        # It comes last: some clients, such as those on Python's h2, take no answer after it.
        self._codec.goaway(ErrorCode.NO_ERROR)
        self._closed = True
        self._outlet.flush()
        if self.transport is not None:
            self.transport.close()

    async def _wait(self, patience: float) -> None:
        if tasks := [running.task for running in self._running.values()]:
            await asyncio.wait(tasks, timeout=patience)

    def _close(self) -> None:
        """End everything. A GOAWAY is queued already."""
        if self._closed:
            return
        self._closed = True
        for running in list(self._running.values()):
            running.cancel()
        # What still comes is dropped, since closing with bytes unread would reset the connection.
        self._share.end()
        self.release()
        self._outlet.finish()

    def _watch_head(self) -> None:
        """Limit the time of a head that has begun."""
        if not self._splitter.in_head:
            self._forget_head()
        elif self._header_timer is None:
            self._header_timer = self._clock.call_later(self._header_timeout, self._give_up)

    def _forget_head(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        error = self._gate.too_slow()
        self._codec.goaway(ErrorCode.ENHANCE_YOUR_CALM, error.message.encode())
        self._close()

    def _count(self, nuisance: Nuisance, count: float = 1) -> bool:
        """Count a nuisance. Return False if that ends the connection."""
        if nuisance is Nuisance.WINDOWS and self._outlet.frames:
            self._patience.allow(nuisance, self._outlet.frames * WINDOWS_PER_FRAME)
            self._outlet.frames = 0
        if not self._patience.spend(nuisance, self._loop.time(), count):
            self._calm(nuisance.value)
        return not self._closed

    def _calm(self, too_many: str) -> None:
        if not self._closed:
            fields = {"peer": str(self.peername), "too many": too_many}
            log.info("a connection is closed", extra={"fields": fields})
            self._codec.goaway(ErrorCode.ENHANCE_YOUR_CALM, too_many.encode())
            self._close()

    # Called by the codec

    def request(self, number: int, fields: Sequence[Field], *, ended: bool) -> None:
        if self._closed:
            return
        if self._leaving or len(self._running) + len(self._lingering) >= MAX_STREAMS:
            self._reset(number, ErrorCode.REFUSED_STREAM)
            return
        assert self.transport is not None
        stream = Http2Stream(number, self._outlet, self.transport, self._cut_off)
        handler: Handler = self._responder
        head, size = EMPTY_HEAD, None
        try:
            head = read_head(tuple(fields))
            size = announced_size(head, ended=ended)
        except BadHead as error:
            handler = self._refusal(error)
        stream.bodiless = head.method == "HEAD"
        body = None if ended else Body(self, number, size, self._acknowledge)
        factory: Any = self._server.request_factory
        request = factory(head, EMPTY_PAYLOAD if body is None else body, self, stream, None)
        task = self._loop.create_task(self._serve(stream, request, handler))
        self._running[number] = _Running(stream, body, task)
        task.add_done_callback(lambda task: self._served(number, task))

    def body(self, number: int, data: bytes, weight: int) -> None:
        running = self._running.get(number)
        if running is None or running.body is None:
            self._acknowledge(number, weight)
        else:
            running.body.receive(data, weight)

    def trailers(self, number: int, fields: Sequence[Field]) -> None:
        try:
            check_trailers(fields)
        except BadHead:
            self._refuse_rest(number)

    def ended(self, number: int) -> None:
        self._stop_lingering(number)
        running = self._running.get(number)
        if running is None or running.body is None or running.stream.gone:
            return
        if running.body.is_whole:
            running.body.feed_eof()
        else:
            self._refuse_rest(number)

    def reset(self, number: int, *, by_peer: bool) -> None:
        self._stop_lingering(number)
        if running := self._running.get(number):
            running.cancel()
        if not by_peer:
            self._count(Nuisance.OUR_RESETS)

    # Requests

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

    def _refusal(self, error: BadHead) -> Handler:
        async def refuse(request: Any) -> Response:
            return self._responder.malformed(error.status, str(error))

        return refuse

    def _served(self, number: int, task: asyncio.Task[None]) -> None:
        """Finish a stream whose handler has ended, with or without an error."""
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
            self._reset(number, ErrorCode.INTERNAL_ERROR)
        elif body is not None and not body.is_eof():
            self._linger(number)

    def _linger(self, number: int) -> None:
        """Drop the rest of a body as it arrives, though the answer is complete.

        Old clients (curl 7.88) take a reset here for a failure, and lose the answer.
        """
        reset = partial(self._stop_lingering, number, reset=True)
        self._lingering[number] = self._clock.call_later(LINGER_S, reset)

    def _stop_lingering(self, number: int, *, reset: bool = False) -> None:
        if timer := self._lingering.pop(number, None):
            timer.cancel()
            if reset:
                self._reset(number, ErrorCode.NO_ERROR)

    def _refuse_rest(self, number: int) -> None:
        """Reset the stream of a request that turned out to be malformed (RFC 9113, 8.1.1)."""
        if running := self._running.get(number):
            self._reset(number, ErrorCode.PROTOCOL_ERROR)
            running.cancel()

    def _cut_off(self, stream: Http2Stream) -> None:
        self._reset(stream.number, ErrorCode.CANCEL)
        self._running[stream.number].cancel()

    def _reset(self, number: int, code: ErrorCode) -> None:
        self._codec.reset(number, code)
        self._outlet.soon()
        self._count(Nuisance.OUR_RESETS)

    def _acknowledge(self, number: int, size: int) -> None:
        """Let the peer send `size` more bytes."""
        if self.transport is not None and size:
            self._codec.acknowledge(number, size)
            self._outlet.soon()


class _Running(NamedTuple):
    """A stream and its running handler."""

    stream: Http2Stream
    body: Body | None
    task: asyncio.Task[None]

    def cancel(self) -> None:
        """Cancel the handler of a stream that is gone. Its submitted commands still run."""
        self.stream.gone = True
        self.task.cancel()
