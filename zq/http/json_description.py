"""The OpenAPI document of a door that speaks JSON: made from its routes and their table."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from zq.http.api.description.openapi import (
    BODY_REFUSALS,
    REF,
    about,
    enclosed,
    identifier,
    in_path,
    parameter_document,
    public_names,
)
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.verbs import Operation

Document = dict[str, Any]

JSON = "application/json"


class DoorText(NamedTuple):
    """The texts of a door's document besides its routes.

    `error` is the type of every error, and `refusals` are the errors of all routes by status.
    """

    title: str
    about: str
    prefix: str
    error: type
    refusals: Mapping[int, str]
    operations: Mapping[tuple[str, str], Operation]


def json_openapi(door: DoorText, routes: Iterable[Route]) -> Document:
    """The whole description."""
    operations = [
        (route, operation)
        for route in routes
        if (operation := door.operations.get((route.method, route.path)))
    ]
    types: list[Any] = [door.error]
    for _, operation in operations:
        types += [type for type in (operation.body, *operation.answers.values()) if type]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    schemas, components = public_names(schemas), public_names(components)
    found = {id(type): schema for type, schema in zip(types, schemas, strict=True)}
    paths: dict[str, Document] = {}
    for route, operation in operations:
        item = _operation(door, route, operation, found)
        paths.setdefault(door.prefix + route.path, {})[route.method.lower()] = item
    return enclosed(door.title, door.about, paths, components)


class JsonDescriptionApi:
    """Describes the given routes, and itself."""

    def __init__(self, door: DoorText, routes: Sequence[Route]) -> None:
        self._door = door
        self._others = routes

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint. It needs no key."""
        return [Route("GET", "/openapi.json", self.describe, None)]

    async def describe(self, _request: web.BaseRequest) -> Answer:
        """This description, as OpenAPI 3.1."""
        return Answer(200, self._document, {"Content-Type": JSON})

    @cached_property
    def _document(self) -> bytes:
        return msgspec.json.encode(json_openapi(self._door, [*self._others, *self.routes()]))


def _operation(
    door: DoorText, route: Route, operation: Operation, schemas: Mapping[int, Document]
) -> Document:
    text = about(route)
    document: Document = {
        "operationId": identifier(route.method, door.prefix + route.path),
        "summary": text.partition("\n")[0],
        "description": text,
        "security": [{}, {"key": []}] if route.scope else [{}],
        "parameters": [*in_path(route.path), *map(parameter_document, operation.parameters)],
        "responses": _responses(door, route, operation, schemas),
    }
    if operation.body is not None:
        document["requestBody"] = {
            "required": not operation.optional_body,
            "content": {JSON: {"schema": schemas[id(operation.body)]}},
        }
    return document


def _responses(
    door: DoorText, route: Route, operation: Operation, schemas: Mapping[int, Document]
) -> dict[str, Document]:
    refusals = dict(door.refusals) | (BODY_REFUSALS if operation.body else {})
    refusals |= operation.refusals
    if route.scope is None:
        refusals.pop(401, None)
    if not operation.streams:
        refusals.pop(406, None)
    error = {JSON: {"schema": schemas[id(door.error)]}}
    responses: dict[str, Document] = {
        str(status): {"description": text, "content": error} for status, text in refusals.items()
    }
    for status, type in operation.answers.items():
        responses[str(status)] = {
            "description": "It was created." if status == 201 else "Done.",
            **({} if type is None else {"content": _content(operation, type, schemas)}),
        }
    return dict(sorted(responses.items()))


def _content(operation: Operation, type: Any, schemas: Mapping[int, Document]) -> Document:
    if type is not str:
        return {JSON: {"schema": schemas[id(type)]}}
    text = {"schema": {"type": "string"}}
    content: Document = dict.fromkeys(operation.streams or ("text/plain",), text)
    if not operation.streams:
        content[JSON] = {"schema": {"type": "object"}}
    return content
