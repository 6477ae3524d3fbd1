"""The door of the operators' page: its files, its session, its live view, and the API it uses."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aiohttp import web

from zq.http.api.endpoints import CAREFUL, answer
from zq.http.api.problems import problem
from zq.http.door import Door, Ids, Route
from zq.http.guard import Guard
from zq.http.sessions import Sessions
from zq.http.transport.addresses import ListenerAddresses
from zq.http.transport.answer import Answer, Response
from zq.http.transport.answers import Answers
from zq.http.transport.bodies import Bodies
from zq.model.errors import ZqError
from zq.model.keys import KeyScope
from zq.operators.admin.http.routes import MaintenanceApi
from zq.operators.page.http.live import LiveApi
from zq.operators.page.http.mask import Mask
from zq.operators.page.http.page import Assets, PageApi
from zq.operators.page.http.session import OFFERED, READ_ONLY, ServerNames, SessionApi
from zq.operators.page.settings import PageSettings
from zq.service.services import Services
from zq.wire.codecs import JSON

API = "/api"
"""Below it, the page finds the native API. It has no rules of its own."""

REVEAL = "/reveal"
"""Below it, a job is as it is stored, for those with the right to see that."""

REVEALED = ("/jobs/{id}", "/jobs/{id}/errors")

UNMASKED = frozenset({"/backup"})
"""Routes whose answers have all that is stored. A mask makes these need the scope `reveal` too."""

NOT_FOR_PAGES = frozenset({"/reset", "/events", "/metrics"})


class DashboardDoor(Door):
    """The door of the page. Its errors are JSON."""

    def __init__(self, ids: Ids, routes: Sequence[Route], prefix: str) -> None:
        super().__init__(ids, routes)
        self.prefix = prefix

    def plain_path(self, route: Route) -> str:
        for place in (API, REVEAL):
            if route.path.startswith(f"{place}/"):
                return route.path.removeprefix(place)
        return super().plain_path(route)

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        found = problem(error, JSON)
        # A browser would ask for a password by a window of its own.
        headers = {k: v for k, v in found.headers.items() if k != "WWW-Authenticate"}
        return Answer(found.status, found.body, headers)

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, JSON, status)


class Dashboard(NamedTuple):
    """The parts of the page's door. `native` are the routes of the native API."""

    settings: PageSettings
    server_name: str
    listeners: ListenerAddresses
    services: Services
    bodies: Bodies
    answers: Answers
    native: Sequence[Route]

    @property
    def routes(self) -> Sequence[Route]:
        """The native API, and backups."""
        return [*self.native, MaintenanceApi(self.services, self.answers).backup_route]

    def doors(self, guard: Guard) -> list[Door]:
        """The door, at each of its prefixes."""
        routes = self._routes(guard)
        ids = self.services.ids
        return [DashboardDoor(ids, routes, prefix) for prefix in self.settings.prefixes]

    def _routes(self, guard: Guard) -> list[Route]:
        clock, read_only = self.services.clock, self.settings.ui_read_only
        guard.sessions = sessions = Sessions(clock)
        scopes = READ_ONLY if read_only else OFFERED
        pattern = self.settings.ui_mask
        mask = None if pattern is None else Mask(pattern, self.services.turns)
        live = LiveApi(self.services, guard, mask)
        offered = [
            live.acting(_careful(route._replace(path=API + route.path)))
            for route in self.routes
            if route.scope in scopes and route.path not in NOT_FOR_PAGES
        ]
        server = ServerNames(self.server_name, self.settings, self.listeners)
        session = SessionApi(guard, sessions, self.bodies, clock, self.settings, server)
        return [
            *PageApi(Assets(), live.expect).routes(),
            *session.routes(),
            *live.routes(),
            *(offered if mask is None else map(mask.over, map(_revealing, offered))),
            *([] if mask is None else self._reveals()),
        ]

    def _reveals(self) -> Iterator[Route]:
        """The routes that show one job with the values that the page hides elsewhere."""
        for route in self.routes:
            if route.method == "GET" and route.path in REVEALED:
                yield route._replace(path=REVEAL + route.path, scope=KeyScope.REVEAL)


def _careful(route: Route) -> Route:
    """The route, for requests that are not to do more than their words say."""
    handle = route.handler

    async def handler(request: web.BaseRequest) -> Response:
        request[CAREFUL] = True
        return await handle(request)

    handler.__doc__ = handle.__doc__
    return route._replace(handler=handler)


def _revealing(route: Route) -> Route:
    """The route, for those alone who may see what is hidden, if no mask covers its answers."""
    if route.path.removeprefix(API) not in UNMASKED:
        return route
    return route._replace(besides=KeyScope.REVEAL)
