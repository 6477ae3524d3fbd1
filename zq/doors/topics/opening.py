"""The door for topics, opened."""

from collections.abc import Sequence

from zq.doors.topics.http.door import TopicsDoor, topics_routes
from zq.doors.topics.settings import DOOR, TopicsSettings
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors


class TopicsDoors(RoomDoors):
    """`/v0` on the primary listener, if the settings have the door."""

    async def start(self, parts: ApiParts, native: Sequence[Route]) -> None:
        self._parts = parts

    def doors(self, listener: str, guard: Guard) -> list[Door]:
        if listener != "primary" or DOOR not in self.settings.doors:
            return []
        gzip = self.settings[TopicsSettings].topics_gzip
        return [TopicsDoor(self._parts.services.ids, topics_routes(self._parts, gzip=gzip))]


DOORS = TopicsDoors
