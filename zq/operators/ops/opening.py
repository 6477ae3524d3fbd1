"""`/listeners`, on every listener: it tells operators where the other one is."""

from aiohttp import web

from zq.http.api.door import NativeRoutes
from zq.http.api.endpoints import answer, endpoint
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.http.transport.addresses import ListenerAddresses
from zq.http.transport.answer import Answer
from zq.model.errors import ScopeMissing
from zq.model.keys import KeyScope
from zq.model.reach import EVERYWHERE
from zq.wire.codecs import BodyCodec

OPERATORS = frozenset({KeyScope.READ, KeyScope.MANAGE})
"""The scopes that open something on the admin listener."""


class ListenersApi:
    """The endpoint, on the listener `here`: `primary` or `admin`."""

    def __init__(self, here: str, listeners: ListenerAddresses, guard: Guard) -> None:
        self._here = here
        self._listeners = listeners
        self._guard = guard

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [Route("GET", "/listeners", endpoint(self.listeners), None)]

    async def listeners(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The addresses of the primary and the admin listener, and which of them answers: `here`.

        If the server has keys, the answer is for those that open the admin listener: with the scope
        `read` or `manage`, and without prefixes. `server` is equal on both listeners of a server.
        """
        key = self._guard.key_of(request)
        if key is not None and not (key.scopes & OPERATORS and key.reach is EVERYWHERE):
            raise ScopeMissing(
                f"the key {key.name!r} does not open the admin listener, which needs the scope read"
                " or manage, for all queues"
            )
        return answer({"here": self._here, **self._listeners.document_for(request)}, accepted)


class OpsDoors(RoomDoors):
    """`/listeners`, on both listeners."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._addresses = parts.addresses

    def routes(self, listener: str, guard: Guard) -> list[Route]:
        return ListenersApi(listener, self._addresses, guard).routes()


DOORS = OpsDoors
