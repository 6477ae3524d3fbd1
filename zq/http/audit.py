"""Has what operators do recorded: each request that needs `manage` and was not refused."""

import msgspec
from aiohttp import web

from zq.http.door import Route
from zq.http.guard import KEY
from zq.http.transport.answer import Answer, Response
from zq.http.transport.gate import peer_of
from zq.model.audit import MOST_ANSWER, MOST_QUERY, OperatorAction
from zq.model.clock import Clock
from zq.model.keys import KeyScope
from zq.service.audit import Audit
from zq.wire.codecs import JSON, MSGPACK

_CODECS = {codec.content_type: codec for codec in (JSON, MSGPACK)}

REFUSED = 400
"""Statuses from here on say that nothing was done."""


class Auditor:
    """Records requests. An answer leaves once its record is stored."""

    def __init__(self, audit: Audit, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock

    def over(self, route: Route) -> Route:
        """The route, with a record of each request that changes what operators answer for."""
        if route.scope is not KeyScope.MANAGE or route.method == "GET":
            return route
        serve = route.handler

        async def handler(request: web.BaseRequest) -> Response:
            response = await serve(request)
            if response.status < REFUSED:
                await self._audit.record(self._action(request, response))
            return response

        handler.__doc__ = serve.__doc__
        return route._replace(handler=handler, ticks=False)

    def _action(self, request: web.BaseRequest, response: Response) -> OperatorAction:
        key = request.get(KEY)
        action = OperatorAction(
            self._clock.now_ms(),
            request.method,
            request.rel_url.path,
            response.status,
            peer_of(request.transport),
            None if key is None else key.name,
            request.rel_url.raw_query_string[:MOST_QUERY],
        )
        if isinstance(response, Answer) and 0 < len(response.body) <= MOST_ANSWER:
            codec = _CODECS.get(response.headers.get("Content-Type", ""))
            if codec is not None:
                body = msgspec.Raw(codec.to_json(response.body))
                return msgspec.structs.replace(action, answer=body)
        return action
