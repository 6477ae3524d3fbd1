"""Has what operators do recorded: what they change, and what they reveal.

A request that is refused before it has changed anything is not recorded.
"""

import asyncio
import logging
import re
from urllib.parse import quote

import msgspec
from aiohttp import web

from zq.engine.inbox import FOLLOWED, Followed
from zq.features.audit.model import MOST_ANSWER, MOST_QUERY, OperatorAction
from zq.features.audit.service import Audit
from zq.features.audit.settings import AuditSettings
from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import BEFORE, PATH, Door, Route
from zq.http.guard import actor_of
from zq.http.room_doors import RoomDoors
from zq.http.transport.answer import Answer, Response
from zq.http.transport.gate import peer_of
from zq.model.clock import Clock
from zq.model.errors import ZqError, unexpected
from zq.model.keys import KeyScope
from zq.wire.codecs import JSON, MSGPACK

log = logging.getLogger(__name__)

_CODECS = {codec.content_type: codec for codec in (JSON, MSGPACK)}

REFUSED = 400
"""Statuses from here on say that nothing was done, or not all."""

GONE = 499
"""The client had gone before its answer: what it wanted is done as a whole, in part or not."""

_READS = ("GET", "HEAD")

_PLACE = re.compile(r"\{(\w+)\}")
_PLAIN = "!$&'()*+,:;=@"
"""What may stand in a path as it is."""


class Auditor:
    """Records requests. An answer leaves once its record is stored."""

    def __init__(self, audit: Audit, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._belated: set[asyncio.Task[None]] = set()

    def over(self, route: Route, door: Door) -> Route:
        """The route, with a record of each request, if operators answer for it.

        They do for changes that need `manage`, and for looking at what is hidden.
        """
        changes = route.scope is KeyScope.MANAGE and route.method not in _READS
        if not changes and route.scope is not KeyScope.REVEAL:
            return route
        serve, pattern = route.handler, door.plain_path(route)

        async def handler(request: web.BaseRequest) -> Response:
            followed = Followed()
            token = FOLLOWED.set(followed)
            try:
                response = await serve(request)
            except (asyncio.CancelledError, ConnectionError):
                self._record_later(self._action(request, pattern, Answer(GONE)))
                raise
            except Exception as error:
                if followed.has_changed:
                    told = error if isinstance(error, ZqError) else unexpected(error)
                    await self._try_to_record(
                        self._action(request, pattern, door.problem(request, told))
                    )
                raise
            finally:
                FOLLOWED.reset(token)
            if response.status < REFUSED or followed.has_changed:
                await self._audit.record(self._action(request, pattern, response))
            return response

        handler.__doc__ = serve.__doc__
        return route._replace(handler=handler, ticks=False)

    def _record_later(self, action: OperatorAction) -> None:
        """Record an action beside its request, which has ended."""
        task = asyncio.create_task(self._try_to_record(action))
        self._belated.add(task)
        task.add_done_callback(self._belated.discard)

    async def _try_to_record(self, action: OperatorAction) -> None:
        try:
            await self._audit.record(action)
        except ZqError as error:
            fields = {"method": action.method, "path": action.path, "error": error.message}
            log.warning("an action could not be recorded", extra={"fields": fields})

    def _action(self, request: web.BaseRequest, pattern: str, response: Response) -> OperatorAction:
        # Made from the names that the handler was given, the path says what it did.
        path = _PLACE.sub(lambda place: quote(request[PATH][place[1]], _PLAIN), pattern)
        action = OperatorAction(
            self._clock.now_ms(),
            request.method,
            path,
            response.status,
            peer_of(request.transport),
            actor_of(request),
            request.rel_url.raw_query_string[:MOST_QUERY],
            before=request.get(BEFORE, {}),
        )
        if request.method in _READS:
            # What was hidden from the page is no matter of the audit either.
            return action
        if isinstance(response, Answer) and 0 < len(response.body) <= MOST_ANSWER:
            codec = _CODECS.get(response.headers.get("Content-Type", ""))
            if codec is not None:
                body = msgspec.Raw(codec.to_json(response.body))
                return msgspec.structs.replace(action, answer=body)
        return action


class AuditDoors(RoomDoors):
    """Records what operators do, unless the settings say otherwise."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._auditor = Auditor(parts.services[Audit], parts.services.clock)

    def over(self, route: Route, door: Door) -> Route:
        return route if self.settings[AuditSettings].no_audit else self._auditor.over(route, door)


DOORS = AuditDoors
