"""GET /openapi.json: made from the routes, their table and the types of documents."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from aiohttp import web

from zq import __version__
from zq.http.api.description.operations import OPERATIONS
from zq.http.api.description.shapes import Error
from zq.http.api.endpoints import answer, endpoint
from zq.http.door import Route
from zq.http.transport.answer import Answer
from zq.model.names import MAX_LABEL
from zq.model.unique import BY_NAME, SPACES, OnConflict
from zq.verbs import Operation, Parameter
from zq.wire.codecs import JSON, MSGPACK, BodyCodec
from zq.wire.query import CHOOSING

Document = dict[str, Any]

REF = "#/components/schemas/{name}"
FORMATS = (JSON.content_type, MSGPACK.content_type)

TITLE = "zq"
ABOUT = (
    "A persistent job queue for one host. Bodies and answers are JSON, or MessagePack where"
    " `Content-Type` and `Accept` say so. Times are milliseconds since 1970. Fields of an answer"
    " without a value are left out. Unknown parameters of a query and unknown fields of a body are"
    " refused, but for the routes of Zizq's, which pass over them as Zizq does: those of new jobs,"
    " patches, crons, budgets, `success` and `failure`. With the header `Zq-Strict: 1` every route"
    " refuses both. The objects `dedupe` and `items` are always strict. A filter without a value"
    " filters nothing where jobs are read, and is refused where they are changed. An error has a"
    " text, and a stable code in the header `Zq-Error`; `Zq-Error-Index` has the index of the job"
    " in a bulk that is at fault, if one is."
)

REFUSALS = {
    400: "What was sent is wrong.",
    401: "There are keys, and the request has none that is known.",
    403: "This key, or this page in a browser, may not do this.",
    406: "No format that the client accepts.",
    503: "A passing cause: try again after `Retry-After` seconds.",
}
BODY_REFUSALS = {
    408: "The body took too long to arrive.",
    413: "The body, or a part of it, is over its limit.",
    415: "A body in a format or a coding that is not understood.",
}

NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_LABEL,
    "pattern": r"^[^,\x00*?\[\]{}\\]+$",
}
REFINED: dict[tuple[str, str], Mapping[str, Any]] = {
    ("Job", "queue"): NAME,
    ("Job", "type"): NAME,
    ("Job", "unique_while"): {"enum": [*BY_NAME, None]},
    ("Job", "unique_in"): {"enum": [*SPACES, None]},
    ("Job", "on_conflict"): {"enum": [*OnConflict, None]},
    ("Job", "meta"): {"type": ["object", "null"]},
}
"""Rules for fields that their types do not express."""


def described(routes: Iterable[Route]) -> Iterator[tuple[str, Route, Operation]]:
    """Path, route and operation of each route that the table has, in the order of the routes."""
    for route in routes:
        if operation := OPERATIONS.get((route.method, route.path)):
            yield route.path, route, operation


def about(route: Route) -> str:
    """The text about a route: the docstring of its handler."""
    return inspect.getdoc(route.handler) or ""


def openapi(routes: Iterable[Route]) -> Document:
    """The whole description."""
    operations = list(described(routes))
    types: list[Any] = [Error]
    for _, _, operation in operations:
        types += [operation.body, *operation.answers.values()]
    types = [type for some in types for type in _each(some)]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    schemas, components = public_names(schemas), public_names(components)
    found = {id(type): schema for type, schema in zip(types, schemas, strict=True)}
    _refine(components)
    paths: dict[str, Document] = {}
    for path, route, operation in operations:
        item = _operation(path, route, operation, found)
        paths.setdefault(path, {})[route.method.lower()] = item
    paths["/jobs"]["post"]["responses"]["201"]["links"] = dict(_links(paths))
    return enclosed(TITLE, ABOUT, paths, components)


def enclosed(
    title: str, text: str, paths: Mapping[str, Any], components: Mapping[str, Any]
) -> Document:
    """The whole document of one door."""
    for schema in components.values():
        if "description" in schema:  # a docstring, whose lines Python does not indent since 3.13
            schema["description"] = inspect.cleandoc(schema["description"])
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": text},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


class DescriptionApi:
    """Describes the given routes, and itself."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._others = routes

    def routes(self) -> list[Route]:
        """Method, path, handler and scope of each endpoint.

        It needs no key: the source shows the same.
        """
        return [Route("GET", "/openapi.json", endpoint(self.describe), None)]

    async def describe(self, _request: web.BaseRequest, accepted: BodyCodec) -> Answer:
        """This description, as OpenAPI 3.1."""
        return answer(self._document, accepted)

    @cached_property
    def _document(self) -> Document:
        return openapi([*self._others, *self.routes()])


def _operation(
    path: str, route: Route, operation: Operation, schemas: Mapping[int, Document]
) -> Document:
    text = about(route)
    document: Document = {
        "operationId": identifier(route.method, path),
        "summary": text.partition("\n")[0],
        "description": text,
        "security": [{}, {"key": []}] if route.scope else [{}],
        "parameters": [*in_path(path), *map(parameter_document, operation.parameters)],
        "responses": _responses(route, operation, schemas),
    }
    if operation.body is not None:
        document["requestBody"] = {
            "required": not operation.optional_body,
            "content": {media: {"schema": schemas[id(operation.body)]} for media in FORMATS},
        }
    return document


def _links(paths: Mapping[str, Document]) -> Iterator[tuple[str, Document]]:
    """The operations that accept the id of a new job."""
    for path, item in paths.items():
        for operation in item.values():
            if path.startswith("/jobs/{id}"):
                name = operation["operationId"]
                yield name, {"operationId": name, "parameters": {"id": "$response.body#/id"}}


def _responses(
    route: Route, operation: Operation, schemas: Mapping[int, Document]
) -> dict[str, Document]:
    refusals = REFUSALS | (BODY_REFUSALS if operation.body else {}) | dict(operation.refusals)
    if route.scope is None:
        del refusals[401]
    error = schemas[id(Error)]
    responses: dict[str, Document] = {}
    for status, text in sorted(refusals.items()):
        content: Document = {media: {"schema": error} for media in FORMATS}
        if status == 400 and operation.plain_refusal:
            content = {"text/plain": {"schema": {"type": "string"}}}
        responses[str(status)] = {"description": text, "content": content}
    for status, type in operation.answers.items():
        shown: Document = {"description": _meaning(status)}
        if type is str:
            shown["content"] = {"text/plain": {"schema": {"type": "string"}}}
        elif type is not None:
            media_types = operation.streams or FORMATS
            several = [schemas[id(each)] for each in _each(type)]
            schema = {"anyOf": several} if len(several) > 1 else several[0]
            shown["content"] = {media: {"schema": schema} for media in media_types}
        responses[str(status)] = shown
    return dict(sorted(responses.items()))


def _each(type: Any) -> tuple[Any, ...]:
    if type is None:
        return ()
    return type if isinstance(type, tuple) else (type,)


def _meaning(status: int) -> str:
    meanings = {
        200: "Done.",
        201: "Stored.",
        202: "Not finished yet.",
        204: "Done; there is nothing to say.",
        410: "The job was cancelled.",
    }
    return meanings[status]


def in_path(path: str) -> Iterator[Document]:
    """The parameters in a path."""
    for part in path.split("/"):
        if part.startswith("{"):
            name = part.strip("{}")
            number = {"type": "integer", "minimum": 0}
            schema = number if name == "attempt" else {"type": "string", "minLength": 1}
            yield {"name": name, "in": "path", "required": True, "schema": schema}


def parameter_document(parameter: Parameter) -> Document:
    """A parameter of a query, or a header."""
    document: Document = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.text,
        "required": parameter.required,
        "schema": parameter.schema,
    }
    if parameter.schema.get("type") == "array":
        document |= {"style": "form", "explode": False}
    is_number = parameter.schema.get("type") == "integer"
    if is_number and parameter.place == "query" and parameter.name not in CHOOSING:
        # An empty value counts as missing.
        document["allowEmptyValue"] = True
    return document


def identifier(method: str, path: str) -> str:
    """The name of an operation."""
    words = path.replace("{", "").replace("}", "").replace("-", "/").replace(".", "/")
    return "_".join([method.lower(), *filter(None, words.split("/"))])


def public_names(schemas: Any) -> Any:
    """Schemas under public names of types: neither `_Job` nor `JobPageSchema`."""
    text = msgspec.json.encode(schemas)
    text = re.sub(rb'"((?:#/components/schemas/)?)_([A-Z])', rb'"\1\2', text)
    return msgspec.json.decode(re.sub(rb'([A-Za-z])Schema"', rb'\1"', text))


def _refine(components: Document) -> None:
    for (component, field), schema in REFINED.items():
        properties = components[component]["properties"]
        properties[field] = {
            name: value
            for name, value in (properties[field] | schema).items()
            if not (name == "anyOf" and ("enum" in schema or "type" in schema))
        }
