"""The recording of what operators do, put around the routes of every door."""

from zq.features.audit.http_recording import Auditor
from zq.features.audit.service import Audit
from zq.features.audit.settings import AuditSettings
from zq.http.api.door import NativeRoutes
from zq.http.api.parts import ApiParts
from zq.http.door import Route
from zq.http.room_doors import RoomDoors


class AuditDoors(RoomDoors):
    """Records what operators do, unless the settings say otherwise."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._auditor = Auditor(parts.services[Audit], parts.services.clock)

    def over(self, route: Route) -> Route:
        return route if self.settings[AuditSettings].no_audit else self._auditor.over(route)


DOORS = AuditDoors
