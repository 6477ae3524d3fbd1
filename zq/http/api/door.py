"""The native API, which is Zizq's: its routes, its formats and its errors. It has no prefix."""

from collections.abc import Callable, Sequence
from functools import cached_property

from aiohttp import web

from zq.http.api.endpoints import answer, answer_codec
from zq.http.api.jobs import JobsApi
from zq.http.api.leases import LeasesApi
from zq.http.api.parts import Api, ApiParts
from zq.http.api.problems import error_codec, problem
from zq.http.api.settlements import SettlementsApi
from zq.http.api.take import TakeApi
from zq.http.door import Door, Later, Route
from zq.http.transport.answer import Answer
from zq.model.errors import ZqError
from zq.rooms import parts


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


BROUGHT: list[tuple[Callable[[ApiParts], Api], ...]] = parts("http_quick", "APIS", tuple)

QUICK: tuple[Callable[[ApiParts], Api], ...] = (
    *(JobsApi, SettlementsApi, LeasesApi, TakeApi),
    *(api for apis in BROUGHT for api in apis),
)
"""What a server is for: new jobs, and those that workers take and settle. Rooms add to them what
has to be there from the start, in their `http_quick.py`."""


class NativeRoutes:
    """The routes of the door. Most of them are made when they are first asked for.

    `quick` are those that producers and workers use, `rest` are all others.
    """

    def __init__(self, given: ApiParts) -> None:
        self._given = given
        self.quick: Sequence[Route] = [route for api in QUICK for route in api(given).routes()]

    @cached_property
    def rest(self) -> Sequence[Route]:
        """The routes of all other APIs, and the one that describes every route."""
        from zq.http.api.rest import rest_routes

        return rest_routes(self._given, self.quick)

    def every(self) -> Sequence[Route]:
        return [*self.quick, *self.rest]

    def later(self) -> Later:
        """The rest, to be made at the first request for it."""
        ids = self._given.services.ids
        return Later("", ["zq.http.api.rest"], lambda: [ZizqDoor(ids, self.rest)])
