"""The operators' page, opened on the listener that the settings name."""

from collections.abc import Sequence

from zq.http.api.parts import ApiParts
from zq.http.door import Door, Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.operators.admin.http.maintenance import MaintenanceApi
from zq.operators.page.http.door import PREFIX, Dashboard
from zq.operators.page.settings import PageSettings


class PageDoors(RoomDoors):
    """The page, with the native API and backups below it, and `GET /`, which says where it is."""

    async def start(self, parts: ApiParts, native: Sequence[Route]) -> None:
        backup = MaintenanceApi(parts.services, parts.answers).backup_route
        self._parts = parts
        self._dashboard = Dashboard(
            settings=self.settings[PageSettings],
            server_name=parts.server_name,
            listeners=parts.addresses,
            services=parts.services,
            bodies=parts.bodies,
            routes=[*native, backup],
        )

    def public_url(self, listener: str) -> str | None:
        page = self.settings[PageSettings]
        return page.public_url if page.ui == listener else None

    def doors(self, listener: str, guard: Guard) -> list[Door]:
        return self._dashboard.on(listener, guard)

    def routes(self, listener: str, guard: Guard) -> list[Route]:
        if listener != "primary":
            return []
        return self._dashboard.pointer(self._parts.addresses.admin())

    @property
    def places(self) -> dict[str, str]:
        addresses = self._parts.addresses
        urls = {"primary": addresses.primary(), "admin": addresses.admin()}
        url = urls.get(self.settings[PageSettings].ui)
        return {} if url is None else {"page": f"{url}{PREFIX}/"}


DOORS = PageDoors
