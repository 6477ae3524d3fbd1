"""GET /events: the events of jobs, as they happen; and workers' reports of progress."""

import logging
from collections.abc import Sequence
from functools import partial

from aiohttp import web

from zq.engine.subscribers.events import EventHub, Reader
from zq.engine.subscribers.window import NumberedEvent, Wanted
from zq.http.api.endpoints import event_framing, parameters
from zq.http.api.parts import ApiParts
from zq.http.api.take import HEADERS
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import EXTRA_HEADERS, Answer
from zq.http.transport.channel import channel_of, leave_little_unsent, watch_for_end
from zq.http.transport.gate import PeerCounts, peer_of
from zq.http.transport.heartbeats import Heartbeats
from zq.model.clock import Clock
from zq.model.errors import InvalidRequest, TooManyStreams
from zq.model.events import EventType
from zq.model.keys import KeyScope
from zq.wire.bodies import decode_progress
from zq.wire.codecs import BodyCodec
from zq.wire.documents import EventDocument, event_document
from zq.wire.framing import EVENT_FRAMINGS, EventFraming
from zq.wire.ids import held_key
from zq.wire.query import is_ulid, names

log = logging.getLogger(__name__)

GAP = "gap"
"""The type of an entry in a stream for missing events."""


class EventsApi:
    """The stream of events, and `progress`."""

    def __init__(self, parts: ApiParts) -> None:
        services = parts.services
        self._work, self._events = services.work, services.events
        self._clock, self._ids = services.clock, services.ids
        self._guard = parts.guard
        self._endpoints = parts.endpoints
        self._peers = PeerCounts(parts.settings.max_streams_per_peer)
        self._heartbeats = parts.heartbeats
        self._forms = {framing: partial(self._text, framing) for framing in EVENT_FRAMINGS}

    def routes(self) -> list[Route]:
        report = self._endpoints.change(self.progress)
        return [
            Route("GET", "/events", self.events, KeyScope.READ, query=True),
            Route("POST", "/jobs/{id}/progress", report, KeyScope.TAKE),
        ]

    async def progress(
        self, request: web.BaseRequest, _accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Tell listeners how far a job in flight is. Nothing of it is stored."""
        data, lease = decode_progress(body, sent)
        key = held_key(request[PATH]["id"], self._ids)
        await self._work.progress(key, data, lease, reach_of(request))
        return Answer(204)

    async def events(self, request: web.BaseRequest) -> web.StreamResponse:
        """Stream the events of jobs from now on, or after `Last-Event-ID`.

        The latest events are kept in memory while somebody listens, and for ten minutes after that.
        If some events are missing, a `gap` says so: they are no longer kept, or the client has read
        too slowly. After the `gap`, the stream goes on with the oldest event that is kept.
        """
        with self._peers.one_more(peer_of(request.transport), _too_many):
            return await self._stream(request)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        framing = event_framing(request)
        wanted = self._wanted(request)
        extra = request.get(EXTRA_HEADERS, {})
        headers = {**HEADERS, **extra, "Content-Type": framing.content_type}
        response = web.StreamResponse(headers=headers)
        if request.method == "HEAD":
            await response.prepare(request)
            return response
        last_id = request.headers.get("Last-Event-ID")
        # Listening begins before the headers are sent, so no later event is missed.
        form = self._forms[framing]
        with self._events.reader(wanted, last_id or None, form) as reader:
            await response.prepare(request)
            channel = channel_of(request)
            if channel.transport is not None:
                leave_little_unsent(request)
                with watch_for_end(channel), self._guard.while_granted(request, reader.end):
                    heartbeats = self._heartbeats.begin(channel, reader.nudge, {"stream": "events"})
                    await _Telling(
                        *(self._events, self._clock, reader, response, framing, heartbeats)
                    ).run()
        return response

    def _wanted(self, request: web.BaseRequest) -> Wanted:
        values = parameters(request, ("queue", "job", "types"))
        queues, reach = names(values.get("queue")), reach_of(request)
        reach.require(queues)
        keys = None
        if jobs := names(values.get("job")):
            keys = frozenset(key for job in jobs if (key := self._key(job)) is not None)
        types = frozenset(map(_type, names(values.get("types"))))
        return Wanted(frozenset(queues), keys, types, reach)

    def _text(self, framing: EventFraming, told: Sequence[NumberedEvent]) -> bytes:
        """The text of events. Readers with the same choice and the same framing share it."""
        ids, id = self._ids, self._events.id
        return framing.frames(
            [event_document(event, ts, id(number), ids) for number, ts, event in told]
        )

    def _key(self, id: str) -> int | None:
        key = self._ids.key(id)
        if key is None and not is_ulid(id):
            raise InvalidRequest(f"invalid query parameters: `job`: {id!r} is not the id of a job")
        return key


def _type(name: str) -> EventType:
    if name not in tuple(EventType):
        expected = ", ".join(EventType)
        raise InvalidRequest(
            f"invalid query parameters: `types`: {name!r} is not one of {expected}"
        )
    return EventType(name)


class _Telling:
    """Sends events from the window to one reader, at the pace of its peer."""

    def __init__(
        self,
        events: EventHub,
        clock: Clock,
        reader: Reader,
        response: web.StreamResponse,
        framing: EventFraming,
        heartbeats: Heartbeats,
    ) -> None:
        self._events = events
        self._clock = clock
        self._reader = reader
        self._response = response
        self._framing = framing
        self._heartbeats = heartbeats

    async def run(self) -> None:
        """Run until the reader must end. Raises if its connection breaks."""
        try:
            if not await self._tell_gap():
                await self._write(self._place())
            while not self._reader.ended:
                await self._reader.wait()
                if not await self._tell_gap() and (text := self._events.text(self._reader)):
                    await self._write(text)
                if self._heartbeats.is_due:
                    await self._write(self._place())
        finally:
            self._heartbeats.stop()

    def _place(self) -> bytes:
        """A heartbeat, which says how far the reader has come."""
        return self._framing.heartbeat(self._events.last_id(self._reader))

    async def _tell_gap(self) -> bool:
        """Tell the reader that it misses events, if it does. Return whether that was so."""
        gap = self._events.gap(self._reader)
        if gap is None:
            return False
        log.info("a reader of events misses some", extra={"fields": {"missed": gap.missed}})
        missing = EventDocument(GAP, self._clock.now_ms(), missed=gap.missed, event_id=gap.event_id)
        await self._write(self._framing.frames([missing]))
        return True

    async def _write(self, data: bytes) -> None:
        self._heartbeats.written()
        await self._response.write(data)


def _too_many() -> TooManyStreams:
    return TooManyStreams(
        "this address has as many event streams as --max-streams-per-peer permits: close some,"
        " or raise it"
    )
