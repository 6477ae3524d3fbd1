"""Schemas of topics: `/topic-schemas`."""

import msgspec
from aiohttp import web

from zq.doors.queue_ti.http.bodies import MessageEndpoints, SchemaBody
from zq.doors.queue_ti.http.documents import rfc3339
from zq.doors.queue_ti.http.problems import answer
from zq.features.schemas.model import StoredSchema
from zq.features.schemas.service_running import Schemas
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.service.services import Services


class SchemaDocument(msgspec.Struct):
    """The schema of a topic."""

    topic: str
    schema_json: str
    version: int
    updated_at: str


class SchemasApi:
    """Schemas by topic."""

    def __init__(self, services: Services, endpoints: MessageEndpoints) -> None:
        self._schemas = services[Schemas]
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        own = "/topic-schemas/{topic}"
        return [
            Route("GET", "/topic-schemas", self.every, KeyScope.READ),
            Route("GET", own, self.get, KeyScope.READ),
            Route("PUT", own, self._endpoints.change(SchemaBody, self.put), KeyScope.MANAGE),
            Route("DELETE", own, self.drop, KeyScope.MANAGE),
        ]

    async def every(self, request: web.BaseRequest) -> Answer:
        """The schemas of all topics that have one."""
        found = await self._schemas.every(reach_of(request))
        return answer({"items": [_document(each) for each in found]})

    async def get(self, request: web.BaseRequest) -> Answer:
        """The schema of one topic."""
        return answer(_document(await self._schemas.get(_topic(request), reach_of(request))))

    async def put(self, request: web.BaseRequest, sent: SchemaBody) -> Answer:
        """Give a topic a schema: new messages have to match it."""
        stored = await self._schemas.put(_topic(request), sent.schema_json, reach_of(request))
        return answer(_document(stored))

    async def drop(self, request: web.BaseRequest) -> Answer:
        """Take the schema of a topic away."""
        await self._schemas.drop(_topic(request), reach_of(request))
        return Answer(204)


def _document(stored: StoredSchema) -> SchemaDocument:
    at = rfc3339(stored.updated_at)
    return SchemaDocument(stored.queue, stored.body, stored.version, at)


def _topic(request: web.BaseRequest) -> str:
    return check_name("topic", request[PATH]["topic"])
