"""The routes for operators that are on every listener."""

from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.operators.ops.http_listeners import ListenersApi


class OpsDoors(RoomDoors):
    """`/listeners`, on both listeners."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._addresses = parts.addresses

    def routes(self, listener: str, guard: Guard) -> list[Route]:
        return ListenersApi(listener, self._addresses, guard).routes()


DOORS = OpsDoors
