"""The native API, which is Zizq's: its routes, its formats and its errors. It has no prefix."""

from collections.abc import Callable, Sequence

from aiohttp import web

from zq import rooms
from zq.http.api.description.openapi import DescriptionApi
from zq.http.api.endpoints import answer, answer_codec
from zq.http.api.events import EventsApi
from zq.http.api.jobs import JobsApi
from zq.http.api.keys import KeysApi
from zq.http.api.leases import LeasesApi
from zq.http.api.outcomes import OutcomesApi
from zq.http.api.parts import Api, ApiParts
from zq.http.api.problems import error_codec, problem
from zq.http.api.push import PushApi
from zq.http.api.settings import SettingsApi
from zq.http.api.settlements import SettlementsApi
from zq.http.api.take import TakeApi
from zq.http.api.workers import WorkersApi
from zq.http.door import Door, Route
from zq.http.transport.answer import Answer
from zq.http.verbs import VerbsApi
from zq.model.errors import ZqError


class ZizqDoor(Door):
    """The door for Zizq's clients. It speaks JSON or MessagePack, also in errors."""

    refuses_queries = True

    def problem(self, request: web.BaseRequest | None, error: ZqError) -> Answer:
        return problem(error, error_codec(request))

    def malformed(self, request: web.BaseRequest | None, status: int, text: str) -> Answer:
        return answer({"error": text}, error_codec(request), status)

    def not_found(self, request: web.BaseRequest) -> Answer:
        """Answer as other doors do, but raise `NotAcceptable` if the client accepts no format."""
        answer_codec(request)
        return super().not_found(request)


CORE: tuple[Callable[[ApiParts], Api], ...] = (
    JobsApi,
    SettlementsApi,
    OutcomesApi,
    PushApi,
    LeasesApi,
    TakeApi,
    WorkersApi,
    KeysApi,
    SettingsApi,
    EventsApi,
    VerbsApi,
)
"""The APIs of the core, before those that rooms bring in their `http.py`."""


def zizq_routes(parts: ApiParts) -> Sequence[Route]:
    """Every route of the door, and the one that describes them."""
    brought: list[tuple[Callable[[ApiParts], Api], ...]] = rooms.parts("http", "APIS", tuple)
    routes = [route for apis in (CORE, *brought) for api in apis for route in api(parts).routes()]
    return routes + DescriptionApi(routes).routes()
