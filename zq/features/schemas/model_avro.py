"""Records of Avro, made ready to be compared with values of JSON.

A schema is compiled once. Then most fields of a payload take one look at the class of their value.
An object within a payload is compared once with each record that it may be, however many unions
lie above it, so the work grows with the values of a payload times the branches of its unions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from zq.features.schemas.errors import InvalidSchema

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
