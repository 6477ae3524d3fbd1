"""Schemas of payloads, in Avro: what a payload must look like before it is stored.

fastavro parses schemas. Payloads are JSON rather than Avro, so they are checked here: a record has
its fields, and their values are of the right kinds. Items of arrays and maps, and the symbols of
enums, are not looked at.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from zq.model.commands import Command
from zq.model.queue_errors import InvalidSchema, SchemaMismatch

MAX_SCHEMA = 64 * 1024
"""The longest schema, in bytes."""

MOST_NESTED = 32
"""Records of records are looked at to this depth."""

MOST_COMPARED = 10_000
"""How many values are compared for a payload: the branches of unions within unions multiply."""

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

        self._names: dict[str, Any] = {}
        try:
            schema = json.loads(body)
            self._root = fastavro.parse_schema(schema, self._names)
            _require_sound(schema)
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

    def check(self, payload: str) -> None:
        """Raise `SchemaMismatch` if a payload, in JSON, does not match.

        Doors whose payloads are texts store JSON within a text, so a text is looked into.
        """
        try:
            value = msgspec.json.decode(payload)
            if isinstance(value, str):
                value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            raise SchemaMismatch("it is not valid JSON") from None
        if isinstance(self._root, dict) and self._root.get("type") in _RECORDS:
            try:
                _Comparison(self._names).record(self._root, value, "", 0)
            except _TooManyCompared:
                raise SchemaMismatch(
                    f"it takes more than {MOST_COMPARED} comparisons: nest fewer unions"
                ) from None


class _TooManyCompared(Exception):
    """A payload could match the branches of its unions in too many ways."""


class _Comparison:
    """Compares one payload with a schema whose named types are `names`."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._left = MOST_COMPARED

    def record(self, schema: Mapping[str, Any], value: object, at: str, depth: int) -> None:
        """Raise `SchemaMismatch` unless a value has the fields of a record."""
        if not isinstance(value, dict):
            raise SchemaMismatch(f'field "{at}" must be an object' if at else "expected an object")
        for field in schema["fields"]:
            name = f"{at}.{field['name']}" if at else field["name"]
            if field["name"] in value:
                self._value(field["type"], value[field["name"]], name, depth + 1)
            elif "default" not in field:
                raise SchemaMismatch(f'missing required field "{name}"')

    def _value(self, schema: Any, value: object, at: str, depth: int) -> None:
        if depth > MOST_NESTED:
            return
        self._left -= 1
        if self._left < 0:
            raise _TooManyCompared
        if isinstance(schema, str) and schema in self._names:
            schema = self._names[schema]
        if isinstance(schema, list):
            self._union(schema, value, at, depth)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in _RECORDS:
            self.record(schema, value, at, depth)
        elif not _KINDS[kind](value):
            raise SchemaMismatch(f'field "{at}" must be of type {kind}')

    def _union(self, branches: Sequence[Any], value: object, at: str, depth: int) -> None:
        for branch in branches:
            try:
                self._value(branch, value, at, depth + 1)
            except SchemaMismatch:
                continue
            return
        raise SchemaMismatch(f'field "{at}" matches no branch of its union')


def _require_sound(schema: Any) -> None:
    """Raise `InvalidSchema` for what Avro forbids and the library lets through."""
    if isinstance(schema, list):
        _require_union(schema)
    elif isinstance(schema, dict):
        kind = schema["type"]
        if "name" in schema and kind in _NAMED:
            for part in str(schema["name"]).split("."):
                _require_name(part)
        if kind in _RECORDS:
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


def _is_int(value: object, bits: int) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return is_whole and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_RECORDS = ("record", "error")
_NAMED = (*_RECORDS, "enum", "fixed")
_CONTAINERS = {"array": "items", "map": "values"}
"""Types with a type within, and where they have it."""

_KINDS: Mapping[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _is_int(value, 32),
    "long": lambda value: _is_int(value, 64),
    "float": _is_number,
    "double": _is_number,
    "string": _is_text,
    "bytes": _is_text,
    "fixed": _is_text,
    "enum": _is_text,
    "array": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
}
"""What JSON has in place of each type of Avro."""
