"""Schemas of payloads, in Avro: what a payload must look like before it is stored.

fastavro parses schemas. Payloads are JSON rather than Avro, so they are checked here: a record has
its fields, and their values are of the right kinds. Items of arrays and maps, and the symbols of
enums, are not looked at.

A schema is compiled once. Then most fields of a payload take one look at the class of their value.
An object within a payload is compared once with each record that it may be, however many unions
lie above it, so the work grows with the values of a payload times the branches of its unions.
"""

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from zq.model.commands import Command
from zq.model.errors import InvalidRequest, NotFound, Unprocessable
from zq.model.payload import PIECE, decoding


class InvalidSchema(InvalidRequest):
    """The schema is not one of Avro."""

    code = "invalid_schema"

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid Avro schema: {reason}")


class SchemaMismatch(Unprocessable):
    """A payload does not match the schema of its queue."""

    code = "schema_mismatch"

    def __init__(self, reason: str) -> None:
        super().__init__(f"payload does not match topic schema: {reason}")


class SchemaNotFound(NotFound):
    """The queue has no schema."""

    code = "schema_not_found"

    def __init__(self, queue: str) -> None:
        super().__init__(f"{queue!r} has no schema")


MOST_NESTED = 32
"""Records of records are looked at to this depth."""

MOST_COMPARED = 10_000
"""How many values are compared for one payload, each with each record that it may be."""


class TooManyWays(Exception):
    """A payload would take more than `MOST_COMPARED` comparisons."""


class Fault(NamedTuple):
    """A value does not match: the names of the fields that lead to it, and what is wrong there."""

    path: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return self.reason.format(f'field "{".".join(self.path)}"')


class FieldType:
    """The allowed values of a field: of one type, or of a branch of a union.

    Values of `classes` match without a further look, integers from `low` to `high` match, and so do
    objects that match one of `records`.
    """

    __slots__ = ("classes", "high", "low", "name", "records")

    def __init__(self, name: str) -> None:
        self.name = name
        self.classes: frozenset[type] = frozenset()
        self.low, self.high = 0, -1
        self.records: list[RecordType] = []

    def add(self, kind: str) -> None:
        """Allow values of a type without a name. Raises `InvalidSchema`."""
        if kind in _BITS:
            limit = 2 ** (_BITS[kind] - 1)
            self.low, self.high = min(self.low, -limit), max(self.high, limit - 1)
        elif kind in _CLASSES:
            self.classes |= _CLASSES[kind]
        else:
            raise InvalidSchema(f"there is no type {kind[:512]!r}")

    @property
    def fault(self) -> Fault:
        """The message about a value that is not allowed."""
        if not self.name:
            return Fault((), "{} matches no branch of its union")
        if self.name in RECORDS:
            return Fault((), "{} must be an object")
        return Fault((), f"{{}} must be of type {self.name}")


class RecordType:
    """A record with its fields: their names, their types, and true for those without a default."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: list[tuple[str, FieldType, bool]] = []


class Compiler:
    """Makes types of a schema that was parsed and has these named types."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._records: dict[str, RecordType] = {}

    def record(self, schema: Mapping[str, Any]) -> RecordType:
        """A record. Its fields may be records that have it as a field. Raises `InvalidSchema`."""
        name = schema["name"]
        if (known := self._records.get(name)) is not None:
            return known
        record = self._records[name] = RecordType()
        record.fields = [
            (field["name"], self._field(field["type"]), "default" not in field)
            for field in schema["fields"]
        ]
        return record

    def _field(self, schema: Any) -> FieldType:
        if isinstance(schema, list):
            type = FieldType("")
            for branch in schema:
                self._add(type, *self._kind(branch))
            return type
        kind, schema = self._kind(schema)
        type = FieldType(kind)
        self._add(type, kind, schema)
        return type

    def _kind(self, schema: Any) -> tuple[str, Any]:
        """The kind of a type, and the type itself in place of its name."""
        schema = self._names.get(schema, schema) if isinstance(schema, str) else schema
        return str(schema["type"]) if isinstance(schema, dict) else str(schema), schema

    def _add(self, type: FieldType, kind: str, schema: Any) -> None:
        if kind in RECORDS:
            type.records.append(self.record(schema))
        else:
            type.add(kind)


class Comparison:
    """Compares one payload with a record. `compared` counts the comparisons.

    Its values must not change or go away meanwhile, since they are known by their ids.
    """

    def __init__(self) -> None:
        self.compared = 0
        self._known: dict[tuple[int, int], Fault | None] = {}

    def fault(self, record: RecordType, value: Mapping[str, Any], depth: int = 0) -> Fault | None:
        """The first field of an object that does not match. Raises `TooManyWays`."""
        self.compared += len(record.fields)
        for name, type, is_required in record.fields:
            inner = value.get(name, _ABSENT)
            if inner.__class__ in type.classes:
                continue
            if inner is _ABSENT:
                if is_required:
                    return Fault((name,), "missing required {}")
            elif fault := self._field_fault(type, inner, depth + 1):
                return Fault((name, *fault.path), fault.reason)
        return None

    def _field_fault(self, type: FieldType, value: Any, depth: int) -> Fault | None:
        if value.__class__ is int and type.low <= value <= type.high:
            return None
        if value.__class__ is not dict or not type.records:
            return type.fault
        fault = None
        for record in type.records:
            fault = self._object_fault(record, value, depth)
            if fault is None:
                return None
        return fault if type.name else type.fault

    def _object_fault(
        self, record: RecordType, value: Mapping[str, Any], depth: int
    ) -> Fault | None:
        if depth > MOST_NESTED:
            return None
        self.compared += 1
        if self.compared > MOST_COMPARED:
            raise TooManyWays
        place = (id(value), id(record))
        if place in self._known:
            return self._known[place]
        fault = self._known[place] = self.fault(record, value, depth)
        return fault


RECORDS = ("record", "error")

_BITS = {"int": 32, "long": 64}

_ABSENT = object()

_CLASSES: Mapping[str, frozenset[type]] = {
    "null": frozenset((type(None),)),
    "boolean": frozenset((bool,)),
    "float": frozenset((int, float)),
    "double": frozenset((int, float)),
    **dict.fromkeys(("string", "bytes", "fixed", "enum"), frozenset((str,))),
    "array": frozenset((list,)),
    "map": frozenset((dict,)),
}
"""The classes of what JSON has in place of each type of Avro."""


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
