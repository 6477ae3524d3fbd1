"""GET /jobs/take: a stream of jobs for as long as the connection lives."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from aiohttp import web

from zq.engine.engine import Engine
from zq.engine.players import MOST_UNSENT, Stream, Wish
from zq.http.channel import Channel, channel_of, watch_for_end
from zq.http.endpoints import Route
from zq.http.gate import PeerCounts, peer_of
from zq.http.guard import Guard, reach_of
from zq.http.native.query import names, parameters, whole_number
from zq.http.negotiation import stream_framing
from zq.http.pulse import Pulse, Pulses
from zq.model.errors import TooManyStreams
from zq.model.job import MAX_UINT32, Job
from zq.model.keys import KeyScope
from zq.wire.documents import NoticeDocument, taken_documents
from zq.wire.framing import Framing

log = logging.getLogger(__name__)

MOST_PREFETCH = 2**31 - 1

MOST_WORKER_ID = 256
"""Characters by which a worker is known; more say nothing new."""

PARAMETERS = ("prefetch", "queue", "worker", "lease_ms", "concurrency", "control")

HEADERS = {
    "Cache-Control": "no-cache, no-store",
    # Tells nginx, and those who do as it does, to pass every frame on at once.
    "X-Accel-Buffering": "no",
}


class TakeOptions(NamedTuple):
    """Times in seconds."""

    heartbeat: float
    stall_timeout: float
    max_per_peer: int
    """Streams that one address may have; 0 is no limit."""


class TakeApi:
    """The stream endpoint."""

    def __init__(self, engine: Engine, guard: Guard, options: TakeOptions) -> None:
        self._engine = engine
        self._guard = guard
        self._peers = PeerCounts(options.max_per_peer)
        self._pulses = Pulses(
            engine, heartbeat=options.heartbeat, stall_timeout=options.stall_timeout
        )
        # One stream renders at a time: between two the event loop looks at its sockets, so that
        # acknowledgements reach the next tick while the frames of this one are still rendered.
        self._turn = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/jobs/take", self.take, KeyScope.TAKE)]

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        """One stream more for its peer, if it may have it."""
        refusal = TooManyStreams(
            "this address has as many take streams as --max-streams-per-peer permits: close some,"
            " or raise it"
        )
        with self._peers.one_more(peer_of(request.transport), refusal):
            return await self._take(request)

    async def _take(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send jobs until the client goes away or the server stops, then give back what is held."""
        framing = stream_framing(request)
        values = parameters(request, PARAMETERS)
        wish = _wish(request, values)
        queues, reach = names(values.get("queue")), reach_of(request)
        reach.require(queues)
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": framing.content_type})
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        channel = channel_of(request)
        if channel.transport is None:
            return response
        stream = self._engine.workers.open(queues, reach, wish, channel.unsent)
        fields = {"stream": stream.number, "worker": wish.worker, "prefetch": wish.window}
        log.debug("stream opened", extra={"fields": fields})
        try:
            with watch_for_end(channel), self._guard.while_granted(request, stream.end):
                outlet = _Outlet(response, channel, framing)
                pulse = self._pulses.begin(channel, stream.nudge, {"stream": stream.number})
                await _Pump(self._engine, stream, outlet, pulse, self._turn).run()
        finally:
            self._engine.workers.close(stream)
            log.debug("stream closed", extra={"fields": fields})
        return response


def _wish(request: web.BaseRequest, values: dict[str, str]) -> Wish:
    """What the request asks of its stream. Raises `InvalidRequest`."""
    worker = request.headers.get("worker-id") or values.get("worker", "")
    lease_ms = values.get("lease_ms")
    return Wish(
        window=whole_number("prefetch", values.get("prefetch", "1"), MOST_PREFETCH),
        # A header may hold bytes that are no text; an answer cannot.
        worker=worker[:MOST_WORKER_ID].encode(errors="replace").decode(),
        lease_ms=None if lease_ms is None else whole_number("lease_ms", lease_ms, MAX_UINT32, 1),
        concurrency=whole_number("concurrency", values.get("concurrency", "1"), MAX_UINT32, 1),
        control=whole_number("control", values.get("control", "0"), 1) == 1,
    )


class _Outlet(NamedTuple):
    """Where a stream goes, and how it is framed."""

    response: web.StreamResponse
    channel: Channel
    framing: Framing


class _Pump:
    """Moves one stream's jobs from its outbox to its peer."""

    def __init__(
        self, engine: Engine, stream: Stream, outlet: _Outlet, pulse: Pulse, turn: asyncio.Lock
    ) -> None:
        self._engine = engine
        self._stream = stream
        self._response, self._channel, self._framing = outlet
        self._pulse = pulse
        self._turn = turn

    async def run(self) -> None:
        """Until the stream is to end. Raises where its connection breaks."""
        try:
            while not self._stream.ended:
                await self._stream.wait()
                await self._notify()
                # What an ended stream has not been sent goes back to its queue.
                while not self._stream.ended and (jobs := self._stream.next_jobs(MOST_UNSENT)):
                    jobs = await self._engine.workers.large_payloads(jobs)
                    frames = await self._frames(jobs)
                    await self._write(frames)
                    self._engine.workers.written(self._stream)
                    await self._notify()
                if self._pulse.is_due:
                    await self._write(self._framing.heartbeat)
            # It may have ended, for a lease was lost, while a heartbeat was written.
            await self._notify()
        finally:
            self._pulse.stop()

    async def _frames(self, jobs: Sequence[Job]) -> bytes:
        try:
            async with self._turn:
                return self._render(jobs)
        except msgspec.DecodeError:  # of a payload that is no JSON any more
            jobs = await self._engine.workers.readable(jobs, self._stream)
            return self._render(jobs)

    def _render(self, jobs: Sequence[Job]) -> bytes:
        return self._framing.frames(taken_documents(jobs, self._engine.ids))

    async def _notify(self) -> None:
        """Write what the stream is told, none of it ahead of the job that it is about."""
        if notices := self._stream.next_notices():
            text = self._engine.ids.text
            documents = [
                NoticeDocument(kind, None if key is None else text(key), lease)
                for kind, key, lease in notices
            ]
            await self._write(self._framing.notices(documents))

    async def _write(self, data: bytes) -> None:
        self._pulse.written()
        await self._response.write(data)
