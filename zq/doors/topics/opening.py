"""The door for topics, opened."""

from collections.abc import Sequence

from zq.doors.topics.settings import DOOR, TopicsSettings
from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Later
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors


class TopicsDoors(RoomDoors):
    """`/v0` on the primary listener, if the settings have the door."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._parts = parts
        self._began = parts.services.clock.monotonic()

    def later(self, listener: str, guard: Guard) -> list[Later]:
        if listener != "primary" or DOOR not in self.settings.doors:
            return []
        return [Later("/v0", ["zq.doors.topics.http.door"], self._door)]

    def _door(self) -> Sequence[Door]:
        from zq.doors.topics.http.door import TopicsDoor, topics_routes

        gzip = self.settings[TopicsSettings].topics_gzip
        routes = topics_routes(self._parts, self._began, gzip=gzip)
        return [TopicsDoor(self._parts.services.ids, routes)]


DOORS = TopicsDoors
