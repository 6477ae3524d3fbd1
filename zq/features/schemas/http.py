"""Schemas of queues."""

from aiohttp import web

from zq.features.schemas.service import Schemas
from zq.features.schemas.wire import QueueSchemasDocument, decode_schema, schema_document
from zq.http.api.endpoints import BodyEndpoints, answer, endpoint
from zq.http.api.query import parameters
from zq.http.door import PATH, Route
from zq.http.guard import reach_of
from zq.http.transport.answer import Answer
from zq.model.keys import KeyScope
from zq.model.names import check_name
from zq.service.services import Services
from zq.wire.codecs import BodyCodec

READ, MANAGE = KeyScope.READ, KeyScope.MANAGE

SCHEMA = "/queues/{queue}/schema"


class QueueSchemasApi:
    """What payloads of a queue must look like. A slash in a queue's name is written `%2F`."""

    def __init__(self, services: Services, endpoints: BodyEndpoints) -> None:
        self._schemas = services[Schemas]
        self._endpoints = endpoints

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint."""
        return [
            Route("GET", "/queues/schemas", endpoint(self.every), READ),
            Route("GET", SCHEMA, endpoint(self.get), READ),
            Route("PUT", SCHEMA, self._endpoints.change(self.put), MANAGE),
            Route("DELETE", SCHEMA, endpoint(self.drop), MANAGE),
        ]

    async def every(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The schemas of all queues that have one."""
        parameters(request, ())
        found = await self._schemas.every(reach_of(request))
        return answer(QueueSchemasDocument([schema_document(each) for each in found]), accepted)

    async def get(self, request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """The schema of a queue."""
        found = await self._schemas.get(_queue(request), reach_of(request))
        return answer(schema_document(found), accepted)

    async def put(
        self, request: web.BaseRequest, accepted: BodyCodec, body: bytes, sent: BodyCodec
    ) -> Answer:
        """Give a queue a schema of Avro, or another one: its new jobs have to match it.

        A job that does not match is refused with 422, by every door. If the schema is a record, a
        payload has to be an object with every field that has no default, each of its type. Jobs of
        schedules and replays are not looked at. A payload that is a text is read as JSON.
        """
        queue, schema = _queue(request), decode_schema(body, sent)
        return answer(
            schema_document(await self._schemas.put(queue, schema, reach_of(request))), accepted
        )

    async def drop(self, request: web.BaseRequest, _accepted: BodyCodec) -> Answer:
        """Take the schema of a queue away: 204, also if there was none."""
        await self._schemas.drop(_queue(request), reach_of(request))
        return Answer(204)


def _queue(request: web.BaseRequest) -> str:
    parameters(request, ())
    return check_name("queue", request[PATH]["queue"])
