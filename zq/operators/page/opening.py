"""The operators' page, opened on the listener that the settings name."""

from collections.abc import Sequence
from functools import cache, partial

from aiohttp import web

from zq.http.api.door import NativeRoutes
from zq.http.api.endpoints import answer
from zq.http.api.parts import ApiParts
from zq.http.door import Door, Later, Route
from zq.http.guard import Guard
from zq.http.room_doors import RoomDoors
from zq.http.transport.answer import Answer
from zq.operators.page.settings import PREFIX, PageSettings
from zq.wire.codecs import JSON


class PageDoors(RoomDoors):
    """The page, with the native API and backups below it, and `GET /`, which says where it is."""

    async def start(self, parts: ApiParts, native: NativeRoutes) -> None:
        self._parts, self._native = parts, native

    def public_url(self, listener: str) -> str | None:
        page = self.settings[PageSettings]
        return page.public_url if page.ui == listener else None

    def later(self, listener: str, guard: Guard) -> list[Later]:
        page = self.settings[PageSettings]
        if page.ui != listener:
            return []
        make = cache(partial(self._doors, guard))
        modules = ["zq.http.api.rest", "zq.operators.page.http.door"]
        return [Later(prefix, modules, make) for prefix in page.prefixes]

    def _doors(self, guard: Guard) -> Sequence[Door]:
        from zq.operators.page.http.door import Dashboard

        parts = self._parts
        dashboard = Dashboard(
            settings=self.settings[PageSettings],
            server_name=parts.server_name,
            listeners=parts.addresses,
            services=parts.services,
            bodies=parts.bodies,
            answers=parts.answers,
            native=self._native.every(),
        )
        return dashboard.doors(guard)

    def routes(self, listener: str, guard: Guard) -> list[Route]:
        """The route `GET /` of the primary listener, which says where the page is."""
        page, admin_url = self.settings[PageSettings], self._parts.addresses.admin()
        if listener != "primary" or page.ui == "off" or (page.ui == "admin" and admin_url is None):
            return []
        own = "" if page.ui == "primary" else admin_url
        place = f"{(page.public_url or own or '').removesuffix('/')}{PREFIX}/"

        async def root(_request: web.BaseRequest) -> Answer:
            """The address of the operators' page."""
            return answer({"ui": place}, JSON)

        return [Route("GET", "/", root, None)]

    @property
    def places(self) -> dict[str, str]:
        addresses = self._parts.addresses
        urls = {"primary": addresses.primary(), "admin": addresses.admin()}
        url = urls.get(self.settings[PageSettings].ui)
        return {} if url is None else {"page": f"{url}{PREFIX}/"}


DOORS = PageDoors
