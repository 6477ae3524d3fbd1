"""`POST /reset`."""

from aiohttp import web

from zq.http.api.endpoints import endpoint
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import KEY
from zq.http.transport.addresses import is_loopback
from zq.http.transport.answer import Answer
from zq.model.errors import Forbidden
from zq.model.keys import KeyScope
from zq.wire.codecs import BodyCodec


class ResetApi:
    """The endpoint that deletes everything."""

    def __init__(self, parts: ApiParts) -> None:
        self._admin = parts.services.admin

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("POST", "/reset", endpoint(self.reset), KeyScope.MANAGE, whole=True)]

    async def reset(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Delete everything, settings too. Without keys, only this machine may do it."""
        if request.get(KEY) is None and not is_loopback(request.remote):
            raise Forbidden("reset is only for clients on this machine, or with a key")
        await self._admin.clear()
        return Answer(204)
