"""Schemas of payloads, in Avro: what a payload must look like before it is stored.

fastavro parses schemas. Payloads are JSON rather than Avro, so they are checked here: a record has
its fields, and their values are of the right kinds. Items of arrays and maps, and the symbols of
enums, are not looked at.
"""

import json
import re
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import msgspec

from zq.features.schemas.errors import InvalidSchema, SchemaMismatch
from zq.features.schemas.model_avro import MOST_COMPARED, RECORDS, Comparison, Compiler, TooManyWays
from zq.model.commands import Command
from zq.model.json_pieces import PIECE, decoding

MAX_SCHEMA = 64 * 1024
"""The longest schema, in bytes."""

MOST_COMPARED_TOGETHER = 20_000_000
"""How many steps are taken for the payloads of one request."""

BYTES_A_STEP = 4
"""The bytes of a payload that are decoded in the time of one comparison, or less."""

_NOT_JSON = "it is not valid JSON"
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


class StoredSchema(msgspec.Struct, frozen=True):
    """The schema of a queue's payloads. The time is in milliseconds."""

    queue: str
    body: str
    version: int
    updated_at: int


class PutSchema(Command[StoredSchema], frozen=True):
    """Give a queue a schema, or another one. Its version counts up."""

    queue: str
    body: str


class DropSchema(Command[None], frozen=True):
    """Take the schema of a queue away, if it has one."""

    queue: str


class PayloadSchema:
    """A parsed schema."""

    def __init__(self, body: str) -> None:
        """Raises `InvalidSchema`."""
        if len(body.encode(errors="replace")) > MAX_SCHEMA:
            raise InvalidSchema(f"it has more than {MAX_SCHEMA} bytes")
        # Most servers have no schema, and the library takes a while to load.
        import fastavro
        from fastavro.schema import SchemaParseException, UnknownType

        names: dict[str, Any] = {}
        self._record = None
        try:
            schema = json.loads(body)
            root = fastavro.parse_schema(schema, names)
            _require_sound(schema)
            if isinstance(root, dict) and root["type"] in RECORDS:
                self._record = Compiler(names).record(root)
        except KeyError as missing:
            raise InvalidSchema(f"it lacks {missing.args[0]!r}") from None
        except json.JSONDecodeError as error:
            raise InvalidSchema(f"it is not JSON: {error}") from None
        except UnknownType as error:
            raise InvalidSchema(f"there is no type {str(error.name)[:512]!r}") from None
        except (SchemaParseException, ValueError) as error:
            raise InvalidSchema(str(error)[:512] or type(error).__name__) from None
        except (AttributeError, RecursionError, TypeError):
            raise InvalidSchema("it is no schema") from None

    def checking(self, payload: str) -> Iterator[int]:
        """Raise `SchemaMismatch` if a payload, in JSON, does not match.

        Doors whose payloads are texts store JSON within a text, so a text is looked into. Yields
        steps that were taken, in slices: a step is a comparison, or `BYTES_A_STEP` bytes.
        """
        try:
            value = yield from _decoded(payload)
            if isinstance(value, str):
                value = yield from _decoded(value)
        except (msgspec.DecodeError, RecursionError):
            raise SchemaMismatch(_NOT_JSON) from None
        compared, mismatch = self._compare(value)
        if mismatch is not None:
            raise mismatch
        yield compared

    def _compare(self, value: Any) -> tuple[int, SchemaMismatch | None]:
        if self._record is None:
            return 1, None
        if not isinstance(value, dict):
            return 1, SchemaMismatch("expected an object")
        comparison = Comparison()
        try:
            fault = comparison.fault(self._record, value)
        except TooManyWays:
            return comparison.compared, SchemaMismatch(
                f"it takes more than {MOST_COMPARED} comparisons: nest fewer unions"
            )
        return 1 + comparison.compared, None if fault is None else SchemaMismatch(str(fault))


def _decoded(text: str) -> Generator[int, None, Any]:
    if len(text) <= PIECE:
        yield len(text) // BYTES_A_STEP
        return msgspec.json.decode(text)
    pieces = decoding(text)
    while True:
        try:
            yield next(pieces) // BYTES_A_STEP
        except StopIteration as done:
            return done.value


def _require_sound(schema: Any) -> None:
    """Raise `InvalidSchema` for what Avro forbids and the library lets through."""
    if isinstance(schema, list):
        _require_union(schema)
    elif isinstance(schema, dict):
        kind = schema["type"]
        if "name" in schema and kind in _NAMED:
            for part in str(schema["name"]).split("."):
                _require_name(part)
        if kind in RECORDS:
            _require_fields(schema.get("fields"))
        elif kind == "enum" and not schema["symbols"]:
            raise InvalidSchema("an enum needs symbols")
        elif kind == "fixed" and not (type(schema["size"]) is int and schema["size"] >= 0):
            raise InvalidSchema("the size of a fixed is a number of bytes")
        elif kind in _CONTAINERS:
            _require_sound(schema[_CONTAINERS[kind]])


def _require_fields(fields: Any) -> None:
    if not isinstance(fields, list):
        raise InvalidSchema("a record needs a list of fields")
    names = set[str]()
    for field in fields:
        name = field["name"]
        _require_name(name)
        if name in names:
            raise InvalidSchema(f"the field {name!r} is there twice")
        names.add(name)
        _require_sound(field["type"])


def _require_union(branches: Sequence[Any]) -> None:
    kinds = set[str]()
    for branch in branches:
        if isinstance(branch, list):
            raise InvalidSchema("a union cannot have another one as a branch")
        kind = branch
        if isinstance(branch, dict):
            kind = branch["name"] if branch["type"] in _NAMED else branch["type"]
        if kind in kinds:
            raise InvalidSchema(f"a union has the branch {kind!r} twice")
        kinds.add(kind)
        _require_sound(branch)


def _require_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidSchema(f"{str(name)[:512]!r} is no name: use letters, digits and underscores")


_NAMED = (*RECORDS, "enum", "fixed")
_CONTAINERS = {"array": "items", "map": "values"}
"""Types with a type within, and where they have it."""
