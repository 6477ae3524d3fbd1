"""The description for people: `python -m zq.http.api.description.reference` prints it."""

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from zq.http.api import endpoints
from zq.http.api.description.openapi import (
    ABOUT,
    BODY_REFUSALS,
    REFUSALS,
    Document,
    about,
    described,
    openapi,
)
from zq.http.api.door import NativeRoutes
from zq.http.api.parts import no_server
from zq.http.api.problems import STATUSES
from zq.http.door import Route, status_of
from zq.http.transport import bodies
from zq.model import errors
from zq.model.errors import ZqError
from zq.rooms import parts
from zq.verbs import Operation

HEAD = f"""# The HTTP API

{ABOUT}

`GET /openapi.json` has the same for machines. Where there are keys, each request needs one that has
the scope named. Besides the answers that are listed, any request may get these:
"""

ERRORS = """The code of an error is in the header `Zq-Error` and does not change. There may be more
codes later: go by the status where you do not know one.
"""


def routes() -> Sequence[Route]:
    """Every route, without a server behind them."""
    return NativeRoutes(no_server()).every()


def markdown() -> str:
    """The whole page."""
    found = routes()
    document = openapi(found)
    lines = [HEAD, *_table(("status", "means"), _refusals()), "", "## Requests", ""]
    for path, route, operation in described(found):
        lines += _request(path, route, operation, document["paths"][path][route.method.lower()])
    lines += ["## Errors", "", ERRORS, *_table(("status", "code", "means"), _errors()), ""]
    lines += ["## Documents", ""]
    for name, schema in sorted(document["components"]["schemas"].items()):
        lines += _shape(name, schema)
    return "\n".join(lines).rstrip() + "\n"


def _refusals() -> Iterator[tuple[str, str]]:
    for status, text in sorted(REFUSALS.items()):
        yield f"`{status}`", text
    for status, text in sorted(BODY_REFUSALS.items()):
        yield f"`{status}`", f"{text} (requests with a body)"


def _errors() -> Iterator[tuple[str, str, str]]:
    """Status, code and meaning of each error. Other doors and the library have more of them."""
    rooms = [name for name in parts("model", "__name__", str) if not name.startswith("zq.doors.")]
    modules = {errors.__name__, endpoints.__name__, bodies.__name__, *rooms}
    found = {
        (status_of(STATUSES, kind), kind.code, inspect.getdoc(kind) or "")
        for kind in _below(ZqError)
        if "code" in vars(kind) and kind.__module__ in modules
    }
    for status, code, text in sorted(found):
        yield f"`{status}`", f"`{code}`", text.partition("\n\n")[0].replace("\n", " ")


def _below(kind: type[ZqError]) -> Iterator[type[ZqError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _request(path: str, route: Route, operation: Operation, item: Document) -> Iterator[str]:
    yield f"### `{route.method} {path}`"
    yield ""
    yield about(route)
    yield ""
    yield _scope(route)
    yield ""
    if operation.parameters:
        rows = [(f"`{p.name}`", _type(p.schema), p.text) for p in operation.parameters]
        yield from _table(("parameter", "type", "means"), rows)
        yield ""
    if operation.body is not None:
        schema = item["requestBody"]["content"]["application/json"]["schema"]
        may = ", which may be left out" if operation.optional_body else ""
        yield f"Body: {_type(schema)}{may}."
        yield ""
    answers = [
        (f"`{status}`", _content(item["responses"][str(status)]))
        for status in sorted(operation.answers)
    ]
    refusals = [(f"`{status}`", text) for status, text in sorted(operation.refusals.items())]
    yield from _table(("status", "answer"), answers + refusals)
    yield ""


def _scope(route: Route) -> str:
    if route.scope is None:
        return "It asks for no key."
    whole = ", of a key without queue prefixes" if route.whole else ""
    return f"Scope: `{route.scope}`{whole}."


def _content(response: Document) -> str:
    content = response.get("content")
    if content is None:
        return "nothing"
    kind = _type(next(iter(content.values()))["schema"])
    if "text/event-stream" in content:
        return f"{kind}, one after the other, as {', '.join(f'`{media}`' for media in content)}"
    return kind


def _shape(name: str, schema: Document) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if "description" in schema:
        yield schema["description"]
        yield ""
    if "enum" in schema:
        yield f"One of {_type(schema)}."
        yield ""
        return
    required = schema.get("required", ())
    rows = [
        (f"`{field}`", _type(shape), "always" if field in required else "")
        for field, shape in schema["properties"].items()
    ]
    yield from _table(("field", "type", "there"), rows)
    yield ""


def _type(schema: Any) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    if "anyOf" in schema:
        kinds = [_type(each) for each in schema["anyOf"] if each != {"type": "null"}]
        return " or ".join(kinds)
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "integer":
            return "number" + _bounds(schema)
        case "string":
            return "text"
        case "object" if isinstance(inner := schema.get("additionalProperties"), dict) and inner:
            return f"object of {_type(inner)}"
        case "object" | ["object", "null"]:
            return "object"
        case "boolean":
            return "true or false"
        case "number":
            return "number, fractions too"
        case _:
            return "anything"


def _bounds(schema: Document) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None and high < 2**62:
        return f" from {low or 0} to {high:,}"
    return "" if low is None else f" from {low}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(cell.replace("\n", " ").replace("|", "\\|") for cell in row) + " |"


if __name__ == "__main__":
    print(markdown(), end="")
