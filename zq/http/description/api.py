"""GET /openapi.json."""

from collections.abc import Sequence
from functools import cached_property

from aiohttp import web

from zq.http.answer import Answer
from zq.http.description.openapi import Document, openapi
from zq.http.endpoints import Route, endpoint
from zq.http.problems import answer
from zq.wire.codecs import Codec


class DescriptionApi:
    """Describes the routes that it is given, and itself."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._others = routes

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint.

        It asks for no key: it tells nothing that the source does not.
        """
        return [Route("GET", "/openapi.json", endpoint(self.describe), None)]

    async def describe(self, _request: web.BaseRequest, accepted: Codec) -> Answer:
        """This description, as OpenAPI 3.1."""
        return answer(self._document, accepted)

    @cached_property
    def _document(self) -> Document:
        return openapi([*self._others, *self.routes()])
