"""`POST /reset`."""

import re

from aiohttp import web

from zq.http.api.endpoints import parameters
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import KEY
from zq.http.transport.addresses import is_loopback
from zq.http.transport.answer import Answer
from zq.model.errors import Forbidden, InvalidRequest
from zq.model.keys import KeyScope

_FIELD = re.compile(rb'\s*(\{\s*"|\w+=|[\x81-\x8f\xde\xdf])')
"""The beginning of a body that has a field, in JSON, as a form or in MessagePack."""


class ResetApi:
    """The endpoint that deletes everything."""

    def __init__(self, parts: ApiParts) -> None:
        self._admin = parts.services.admin

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("POST", "/reset", self.reset, KeyScope.MANAGE, whole=True)]

    async def reset(self, request: web.BaseRequest) -> Answer:
        """Delete everything, settings too. Without keys, only this machine may do it.

        A query, or a body that has a field, is refused with 400: a filter would be lost.
        """
        parameters(request, ())
        if request.can_read_body and _FIELD.match(await request.read()):
            raise InvalidRequest(
                "a reset deletes everything, and reads no filter: leave the body out, or delete"
                " some jobs by DELETE /jobs?queue=…"
            )
        if request.get(KEY) is None and not is_loopback(request.remote):
            raise Forbidden("reset is only for clients on this machine, or with a key")
        await self._admin.clear()
        return Answer(204)
