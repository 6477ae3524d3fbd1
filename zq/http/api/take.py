"""GET /jobs/take: a stream of jobs for as long as its connection lasts."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from aiohttp import hdrs, web

from zq.engine.delivery.takers import MOST_UNSENT, Stream, Subscription
from zq.http.api.endpoints import PlainRefusal, parameters, stream_framing
from zq.http.api.packing import SMALL, Packer
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import reach_of
from zq.http.transport.answer import EXTRA_HEADERS
from zq.http.transport.channel import Channel, channel_of, watch_for_end
from zq.http.transport.gate import PeerCounts, peer_of
from zq.http.transport.heartbeats import Heartbeats
from zq.model.errors import InvalidRequest, TooManyStreams
from zq.model.ids import IdCodec
from zq.model.job import MAX_UINT32, MAX_UINT64, JobRecord
from zq.model.keys import KeyScope
from zq.model.reach import EVERYWHERE
from zq.service.work import Work
from zq.wire.documents import NoticeDocument, taken_documents
from zq.wire.framing import MSGPACK_STREAM, Framing, packed_frames
from zq.wire.query import QUERY, names, whole_number

log = logging.getLogger(__name__)

MOST_PREFETCH = 2**31 - 1

MOST_WORKER_ID = 256
"""The longest name of a worker, in characters. The rest is cut off."""

PARAMETERS = ("prefetch", "queue", "worker", "lease_ms", "concurrency", "control", "stall_limit")

HEADERS = {
    "Cache-Control": "no-cache, no-store",
    # Tells nginx, and similar proxies, to pass every frame on at once.
    "X-Accel-Buffering": "no",
}


class TakeApi:
    """`GET /jobs/take`: a stream of deliveries."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._work, self._ids = services.work, services.ids
        self._guard = parts.guard
        self._packer = parts.packer
        self._peers = PeerCounts(parts.settings.max_streams_per_peer)
        self._heartbeats = parts.heartbeats
        # One stream renders at a time. Between two renderings the event loop reads its sockets, so
        # acknowledgements reach the next tick while frames of this one are still being rendered.
        self._turn = asyncio.Lock()

    def routes(self) -> list[Route]:
        return [Route("GET", "/jobs/take", self.take, KeyScope.TAKE, query=True)]

    async def take(self, request: web.BaseRequest) -> web.StreamResponse:
        """Stream jobs while the connection lasts, unless its peer has too many streams already."""
        with self._peers.one_more(peer_of(request.transport), _too_many):
            return await self._take(request)

    async def _take(self, request: web.BaseRequest) -> web.StreamResponse:
        """Send jobs until the client goes away or the server stops, then return the held jobs."""
        framing = stream_framing(request)
        try:
            queues, subscription = _subscription(request)
        except InvalidRequest as error:
            detail = error.message.removeprefix(QUERY)
            raise PlainRefusal(
                f"Failed to deserialize query string: {detail}", error.code
            ) from None
        reach = reach_of(request)
        if reach is not EVERYWHERE:
            reach.require(queues)
        extra = request.get(EXTRA_HEADERS, {})
        headers = {**HEADERS, **extra, "Content-Type": framing.content_type}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        channel = channel_of(request)
        if channel.transport is None:
            return response
        stream = self._work.open(queues, reach, subscription, channel.unsent)
        fields = {
            "stream": stream.number,
            "worker": subscription.worker,
            "prefetch": subscription.window,
        }
        log.debug("stream opened", extra={"fields": fields})
        try:
            with watch_for_end(channel), self._guard.while_granted(request, stream.end):
                outlet = _Outlet(response, channel, framing, self._packer)
                heartbeats = self._heartbeats.begin(
                    channel, stream.nudge, {"stream": stream.number}
                )
                await _Pump(self._work, self._ids, stream, outlet, heartbeats, self._turn).run()
        finally:
            self._work.close(stream)
            log.debug("stream closed", extra={"fields": fields})
        return response


def _too_many() -> TooManyStreams:
    return TooManyStreams(
        "this address has as many take streams as --max-streams-per-peer permits: close some,"
        " or raise it"
    )


def _subscription(request: web.BaseRequest) -> tuple[tuple[str, ...], Subscription]:
    """The queues and the subscription in the request. Raises `InvalidRequest`."""
    values = parameters(request, PARAMETERS, ("queue",))
    worker = request.headers.get("worker-id") or values.get("worker", "")
    lease_ms, stall_limit = values.get("lease_ms"), values.get("stall_limit")
    return names(values.get("queue")), Subscription(
        window=min(
            whole_number("prefetch", values.get("prefetch", "1"), MAX_UINT64), MOST_PREFETCH
        ),
        lease_ms=None if lease_ms is None else whole_number("lease_ms", lease_ms, MAX_UINT32, 1),
        concurrency=whole_number("concurrency", values.get("concurrency", "1"), MAX_UINT32, 1),
        control=whole_number("control", values.get("control", "0"), 1) == 1,
        stall_limit=None
        if stall_limit is None
        else whole_number("stall_limit", stall_limit, MAX_UINT32),
        # A header may hold bytes that are not text; an answer cannot.
        worker=_readable(worker),
        address=request.remote or "",
        client=_readable(request.headers.get(hdrs.USER_AGENT, "")),
    )


def _readable(header: str) -> str:
    return header[:MOST_WORKER_ID].encode(errors="replace").decode()


class _Outlet(NamedTuple):
    """The destination of a stream, and its framing."""

    response: web.StreamResponse
    channel: Channel
    framing: Framing
    packer: Packer


class _Pump:
    """Sends one stream's jobs to its peer."""

    def __init__(
        self,
        work: Work,
        ids: IdCodec,
        stream: Stream,
        outlet: _Outlet,
        heartbeats: Heartbeats,
        turn: asyncio.Lock,
    ) -> None:
        self._work = work
        self._ids = ids
        self._stream = stream
        self._response, self._channel, self._framing, self._packer = outlet
        self._heartbeats = heartbeats
        self._turn = turn

    async def run(self) -> None:
        """Run until the stream must end. Raises if its connection breaks."""
        try:
            while not self._stream.ended:
                await self._stream.wait()
                if self._stream.notices:
                    await self._notify()
                # Jobs that were not sent when the stream ended return to their queues.
                while not self._stream.ended and (jobs := self._stream.next_jobs(MOST_UNSENT)):
                    if None in [job.payload for job in jobs]:
                        jobs = await self._work.large_payloads(jobs)
                    await self._write(await self._frames(jobs))
                    if self._stream.notices:
                        await self._notify()
                    if self._stream.choked:
                        self._work.relieved(self._stream)
                if self._stream.choked:
                    # What was too much has been settled before it was written.
                    self._work.relieved(self._stream)
                if self._heartbeats.is_due:
                    await self._write(self._framing.heartbeat)
            # It may have ended during a heartbeat, because a lease was lost.
            await self._notify()
        finally:
            self._heartbeats.stop()

    async def _frames(self, jobs: Sequence[JobRecord]) -> bytes:
        try:
            return await self._render(jobs)
        except msgspec.DecodeError:  # the payload is no JSON any more
            jobs = await self._work.readable(jobs, self._stream)
            return await self._render(jobs)

    async def _render(self, jobs: Sequence[JobRecord]) -> bytes:
        async with self._turn:
            documents = taken_documents(jobs, self._ids)
            if (
                self._framing is not MSGPACK_STREAM
                or sum([job.payload_size for job in jobs]) < SMALL
            ):
                return self._framing.frames(documents)
        await self._packer.fill(documents)
        return packed_frames(documents)

    async def _notify(self) -> None:
        """Write the stream's notices, none of them before the job that it concerns."""
        if notices := self._stream.next_notices():
            text = self._ids.text
            documents = [
                NoticeDocument(kind, None if key is None else text(key), lease)
                for kind, key, lease in notices
            ]
            await self._write(self._framing.notices(documents))

    async def _write(self, data: bytes) -> None:
        self._heartbeats.written()
        await self._response.write(data)
