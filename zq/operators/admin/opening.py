"""The admin API, opened on the admin listener."""

from collections.abc import Sequence
from functools import partial

from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Later, Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.operators.admin.http.door import AdminDoor
from zq.operators.ops.http_quick import ProbesApi


class AdminDoors(RoomDoors):
    """The first door of the admin listener."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._parts = parts

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

        return [self._door(admin_routes(self._parts, guard))]

    def _door(self, routes: Sequence[Route]) -> AdminDoor:
        return AdminDoor(self._parts.services.ids, routes, self._parts.addresses)


DOORS = AdminDoors
