"""GET /jobs/take: a stream of jobs for as long as the connection lives."""

import asyncio
import logging
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from zq.engine.engine import Engine
from zq.engine.streams import MOST_UNSENT, Stream
from zq.http.connection import watch_for_end
from zq.http.native.query import names, parameters, whole_number
from zq.http.negotiation import stream_framing
from zq.model.job import Job
from zq.wire.documents import taken_document
from zq.wire.framing import Framing

log = logging.getLogger(__name__)

MOST_PREFETCH = 2**31 - 1

SILENT_HEARTBEATS = 2
"""A peer that owes an acknowledgement of data for this many heartbeats has vanished."""

HEADERS = {
    "Cache-Control": "no-cache, no-store",
    # Tells nginx, and those who do as it does, to pass every frame on at once.
    "X-Accel-Buffering": "no",
}


class TakeOptions(NamedTuple):
    """Times in seconds."""

    heartbeat: float
    stall_timeout: float


class TakeApi:
    """The stream endpoint."""

    def __init__(self, engine: Engine, options: TakeOptions) -> None:
        self._engine = engine
        self._options = options
        # One stream renders at a time: between two the event loop looks at its sockets, so that
        # acknowledgements reach the next tick while the frames of this one are still rendered.
        self._turn = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """Method, path and handler of each endpoint."""
        return [web.get("/jobs/take", self.take)]

    async def take(self, request: web.Request) -> web.StreamResponse:
        """Send jobs until the client goes away or the server stops, then give back what is held."""
        framing = stream_framing(request)
        values = parameters(request, ("prefetch", "queue"))
        window = whole_number("prefetch", values.get("prefetch", "1"), MOST_PREFETCH)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": framing.content_type})
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        transport = request.transport
        if transport is None:
            return response
        worker = request.headers.get("worker-id", "")
        stream = self._engine.open_stream(
            names(values.get("queue")), window, worker, transport.get_write_buffer_size
        )
        fields = {"stream": stream.number, "worker": worker, "prefetch": window}
        log.debug("stream opened", extra={"fields": fields})
        try:
            with watch_for_end(request):
                connection = _Connection(response, transport, framing)
                await _Pump(self._engine, stream, connection, self._options, self._turn).run()
        finally:
            self._engine.close_stream(stream)
            log.debug("stream closed", extra={"fields": fields})
        return response


class _Connection(NamedTuple):
    """Where a stream goes, and how it is framed."""

    response: web.StreamResponse
    transport: asyncio.Transport
    framing: Framing


class _Pump:
    """Moves one stream's jobs from its outbox to its connection."""

    def __init__(
        self,
        engine: Engine,
        stream: Stream,
        connection: _Connection,
        options: TakeOptions,
        turn: asyncio.Lock,
    ) -> None:
        self._engine = engine
        self._stream = stream
        self._response, self._transport, self._framing = connection
        self._options = options
        self._turn = turn
        self._quiet_since = engine.clock.monotonic()

    async def run(self) -> None:
        """Until the stream is to end. Raises where its connection breaks or stalls for too long."""
        clock = self._engine.clock
        while not self._stream.ended:
            remaining = self._quiet_since + self._options.heartbeat - clock.monotonic()
            timer = clock.call_later(max(remaining, 0.0), self._stream.nudge)
            await self._stream.wait()
            timer.cancel()
            while jobs := self._stream.next_jobs(MOST_UNSENT):
                jobs = await self._engine.large_payloads(jobs)
                async with self._turn:
                    frames = self._render(jobs)
                await self._write(frames)
            if clock.monotonic() - self._quiet_since >= self._options.heartbeat:
                await self._beat()

    def _render(self, jobs: Sequence[Job]) -> bytes:
        documents = [taken_document(job, self._engine.ids) for job in jobs]
        return self._framing.frames(documents)

    async def _beat(self) -> None:
        """A heartbeat in silence; and a look whether anyone is still there to hear it."""
        if _has_vanished(self._transport, self._options.heartbeat * SILENT_HEARTBEATS):
            log.info(
                "a stream's peer has vanished", extra={"fields": {"stream": self._stream.number}}
            )
            self._transport.abort()
            return
        self._quiet_since = self._engine.clock.monotonic()
        # A peer that does not read gets no heartbeats piled up.
        if not self._transport.get_write_buffer_size():
            await self._response.write(self._framing.heartbeat)

    async def _write(self, frames: bytes) -> None:
        stalled = self._engine.clock.call_later(self._options.stall_timeout, self._give_up)
        try:
            await self._response.write(frames)
        finally:
            stalled.cancel()
        self._quiet_since = self._engine.clock.monotonic()
        self._engine.written(self._stream)

    def _give_up(self) -> None:
        log.info(
            "a stream has stalled for too long", extra={"fields": {"stream": self._stream.number}}
        )
        self._transport.abort()


# The fields of Linux's struct tcp_info that tell a peer that is gone from one that does not read.
_TCP_INFO = struct.Struct("@8B24I")
_UNACKED, _LAST_ACK_RECEIVED = 8 + 4, 8 + 12


def _has_vanished(transport: asyncio.Transport, seconds: float) -> bool:
    """Whether sent data has gone unacknowledged for so long that nobody can be there.

    A peer that merely does not read has acknowledged all that it was sent: its window is shut, and
    nothing more is in flight. It may stall, up to the limit for that.
    """
    connection: socket.socket | None = transport.get_extra_info("socket")
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    if len(info) < _TCP_INFO.size:
        return False
    fields = _TCP_INFO.unpack(info)
    return bool(fields[_UNACKED]) and fields[_LAST_ACK_RECEIVED] >= seconds * 1000
