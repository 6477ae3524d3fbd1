"""The admin API, opened on the admin listener."""

from collections.abc import Sequence
from functools import partial

from aiohttp import web

from zq.http.api.door import NativeRoutes
from zq.http.api.endpoints import answer
from zq.http.api.parts import ApiParts
from zq.http.api.problems import problem
from zq.http.door import Door, Ids, Later, Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.http.transport.addresses import ListenerAddresses
from zq.http.transport.answer import Answer
from zq.model.errors import ZqError
from zq.operators.ops.http_quick import ProbesApi
from zq.wire.codecs import JSON


class AdminDoor(Door):
    """The door for `zq top`, Zizq's `top`, and backups."""

    refuses_queries = True

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error, JSON)

    def __init__(self, ids: Ids, routes: Sequence[Route], listeners: ListenerAddresses) -> None:
        super().__init__(ids, routes)
        self._listeners = listeners

    def not_found(self, request: web.BaseRequest) -> Answer:
        """Say where the API is: whoever asks for it here has mixed up the two ports."""
        place = self._listeners.primary_for(request)
        text = f"this is the admin listener, which has no such path: the API is at {place}"
        return self.malformed(request, 404, text)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, JSON, status)


class AdminDoors(RoomDoors):
    """The first door of the admin listener."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._parts = parts
        self._began = parts.services.clock.monotonic()

    def doors(self, listener: str, guard: Guard) -> list[Door]:
        if listener != "admin":
            return []
        return [self._door(ProbesApi(self._parts).routes())]

    def later(self, listener: str, guard: Guard) -> list[Later]:
        if listener != "admin":
            return []
        return [Later("", ["zq.operators.admin.http.routes"], partial(self._rest, guard))]

    def _rest(self, guard: Guard) -> Sequence[Door]:
        from zq.operators.admin.http.routes import admin_routes

        return [self._door(admin_routes(self._parts, guard, self._began))]

    def _door(self, routes: Sequence[Route]) -> AdminDoor:
        return AdminDoor(self._parts.services.ids, routes, self._parts.addresses)


DOORS = AdminDoors
