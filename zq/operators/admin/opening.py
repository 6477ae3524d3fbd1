"""The admin API, opened on the admin listener."""

from collections.abc import Sequence

from zq.http.api.parts import ApiParts
from zq.http.door import Door, Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.operators.admin.http.door import AdminDoor, admin_routes


class AdminDoors(RoomDoors):
    """The first door of the admin listener."""

    async def start(self, parts: ApiParts, native: Sequence[Route]) -> None:
        self._parts = parts

    def doors(self, listener: str, guard: Guard) -> list[Door]:
        if listener != "admin":
            return []
        parts = self._parts
        return [AdminDoor(parts.services.ids, admin_routes(parts, guard), parts.addresses)]


DOORS = AdminDoors
