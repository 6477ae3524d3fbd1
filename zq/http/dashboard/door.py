"""The door of the operators' page: its files, its session, its live view, and the API it uses."""

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web

from zq.door_settings import DoorSettings
from zq.http.dashboard.assets import Assets
from zq.http.dashboard.live import LiveApi
from zq.http.dashboard.page import PageApi
from zq.http.dashboard.session import OFFERED, READ_ONLY, SessionApi
from zq.http.door import Door, Route
from zq.http.guard import Guard
from zq.http.sessions import Sessions
from zq.http.transport.answer import Answer
from zq.http.transport.bodies import Bodies
from zq.http.zizq.endpoints import answer
from zq.http.zizq.problems import problem
from zq.model.errors import ZqError
from zq.service import Services
from zq.wire.codecs import JSON

PREFIX = "/ui"
API = "/api"
"""Below it, the page finds the native API. It has no rules of its own."""

NOT_FOR_PAGES = frozenset({"/reset", "/events", "/metrics"})


class DashboardDoor(Door):
    """The door of the page. Its errors are JSON."""

    prefix = PREFIX

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        found = problem(error, JSON)
        # A browser would ask for a password by a window of its own.
        headers = {k: v for k, v in found.headers.items() if k != "WWW-Authenticate"}
        return Answer(found.status, found.body, headers)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, JSON, status)


class Dashboard(NamedTuple):
    """What the page's door is made of. `routes` are those of the native API."""

    settings: DoorSettings
    services: Services
    bodies: Bodies
    routes: Sequence[Route]

    def on(self, listener: str, guard: Guard) -> list[Door]:
        """The door, if the settings want the page on this listener."""
        if self.settings.ui != listener:
            return []
        return [DashboardDoor(self.services.ids, self._routes(guard))]

    def pointer(self, admin_url: str | None) -> list[Route]:
        """The route `GET /` of the primary listener, which says where the page is."""
        if self.settings.ui == "off" or (self.settings.ui == "admin" and admin_url is None):
            return []
        place = f"{PREFIX}/" if self.settings.ui == "primary" else f"{admin_url}{PREFIX}/"

        async def root(_request: web.BaseRequest) -> Answer:
            """Where the operators' page is."""
            return answer({"ui": place}, JSON)

        return [Route("GET", "/", root, None)]

    def _routes(self, guard: Guard) -> list[Route]:
        clock, read_only = self.services.clock, self.settings.ui_read_only
        guard.sessions = sessions = Sessions(clock)
        scopes = READ_ONLY if read_only else OFFERED
        live = LiveApi(self.services, guard)
        return [
            *PageApi(Assets()).routes(),
            *SessionApi(guard, sessions, self.bodies, clock, read_only=read_only).routes(),
            *live.routes(),
            *(
                live.acting(route._replace(path=API + route.path))
                for route in self.routes
                if route.scope in scopes and route.path not in NOT_FOR_PAGES
            ),
        ]
