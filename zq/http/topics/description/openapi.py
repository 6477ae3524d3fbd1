"""GET /v0/openapi.json: made from the routes, their table and the types of documents."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from aiohttp import web

from zq.http.door import Route
from zq.http.topics.description.operations import OPERATIONS
from zq.http.topics.description.shapes import TopicRefusal
from zq.http.transport.answer import Answer
from zq.http.zizq.description.openapi import (
    BODY_REFUSALS,
    REF,
    about,
    enclosed,
    identifier,
    in_path,
    parameter_document,
    public_names,
)
from zq.http.zizq.description.operations import Operation

Document = dict[str, Any]

PREFIX = "/v0"
JSON = "application/json"
ABOUT = (
    "Programs append records to topics. Those of a log are read by cursors. Those of a queue are"
    " claimed and acknowledged. Bodies are JSON. Times"
    " are milliseconds since 1970. Unknown fields of a body are passed over. An error has a stable"
    " `code`, a message for people, and perhaps a `detail`."
)
REFUSALS = {
    400: "What was sent is wrong.",
    401: "There are keys, and the request has none that is known.",
    403: "This key, or this page in a browser, may not do this.",
    406: "The client does not accept server-sent events.",
    429: "A limit is reached, or the server is busy: try again after `Retry-After` seconds.",
    503: "A passing cause: try again after `Retry-After` seconds.",
}


def topics_openapi(routes: Iterable[Route]) -> Document:
    """The whole description."""
    operations = [
        (route, operation)
        for route in routes
        if (operation := OPERATIONS.get((route.method, route.path)))
    ]
    types: list[Any] = [TopicRefusal]
    for _, operation in operations:
        types += [type for type in (operation.body, *operation.answers.values()) if type]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    schemas, components = public_names(schemas), public_names(components)
    found = {id(type): schema for type, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Document] = {}
    for route, operation in operations:
        item = _operation(route, operation, found)
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = item
    return enclosed("zq: topics", ABOUT, paths, components)


class TopicDescriptionApi:
    """Describes the given routes, and itself."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._others = routes

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint. It needs no key."""
        return [Route("GET", "/openapi.json", self.describe, None)]

    async def describe(self, _request: web.BaseRequest) -> Answer:
        """This description, as OpenAPI 3.1."""
        return Answer(200, self._document, {"Content-Type": JSON})

    @cached_property
    def _document(self) -> bytes:
        return msgspec.json.encode(topics_openapi([*self._others, *self.routes()]))


def _operation(route: Route, operation: Operation, schemas: Mapping[int, Document]) -> Document:
    text = about(route)
    document: Document = {
        "operationId": identifier(route.method, PREFIX + route.path),
        "summary": text.partition("\n")[0],
        "description": text,
        "security": [{}, {"key": []}] if route.scope else [{}],
        "parameters": [*in_path(route.path), *map(parameter_document, operation.parameters)],
        "responses": _responses(route, operation, schemas),
    }
    if operation.body is not None:
        schema = schemas[id(operation.body)]
        document["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return document


def _responses(
    route: Route, operation: Operation, schemas: Mapping[int, Document]
) -> dict[str, Document]:
    refusals = REFUSALS | (BODY_REFUSALS if operation.body else {}) | dict(operation.refusals)
    if route.scope is None:
        del refusals[401]
    if not operation.streams:
        del refusals[406]
    error = {JSON: {"schema": schemas[id(TopicRefusal)]}}
    responses: dict[str, Document] = {
        str(status): {"description": text, "content": error} for status, text in refusals.items()
    }
    for status, type in operation.answers.items():
        schema = {JSON: {"schema": schemas[id(type)]}}
        if type is str:
            text = {"schema": {"type": "string"}}
            schema = dict.fromkeys(operation.streams or ("text/plain",), text)
            if not operation.streams:
                schema[JSON] = {"schema": {"type": "object"}}
        meaning = "It was created." if status == 201 else "Done."
        responses[str(status)] = {"description": meaning, "content": schema}
    return dict(sorted(responses.items()))
