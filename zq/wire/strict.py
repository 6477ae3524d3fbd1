"""Strict shapes: the shapes of bodies, but for clients that want no field to be passed over.

A shape is a type of msgspec's, and declares the fields that a body may have. A strict shape is made
from it, and refuses all others.
"""

import re
from collections.abc import Collection
from functools import cache, reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from zq.model.errors import UnknownField

T = TypeVar("T")

_REPORT = "Object contains unknown field "
_LONGEST = 64
"""A longer name is no misspelt one. Comparing takes the square of the length."""

_field: Any = msgspec.field
_STEP = re.compile(r"\.(?P<field>\w+)|\[[^\]]*\]")


def strict_decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    """A decoder that refuses every field that a shape, or a shape within it, does not declare."""
    known: Any = shape  # a type is hashable, which mypy does not see
    decoder: msgspec.json.Decoder[T] = _decoder(known)
    return decoder


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_strict(shape))


def refuse_unknown(error: msgspec.ValidationError, shape: Any, prefix: str) -> None:
    """Raise `UnknownField` if an error of the parser is about a field that a shape lacks.

    The message begins with `prefix` and the place of the field.
    """
    report, _, place = str(error).replace("`", "").partition(" - at $")
    if report.startswith(_REPORT):
        name = report.removeprefix(_REPORT)
        place = place.lstrip(".")
        where = f"{prefix}{place}: " if place else prefix
        near = near_name(name, _fields(shape, place))
        remedy = f"; did you mean {near!r}?" if near else ": correct its name, or leave it out"
        raise UnknownField(f"{where}unknown field {name[:_LONGEST]!r}{remedy}")


def near_name(name: str, known: Collection[str]) -> str | None:
    """The known name that an unknown one was probably meant to be."""
    from difflib import get_close_matches  # only mistakes need it

    near = get_close_matches(name, known, 1) if len(name) <= _LONGEST else []
    return near[0] if near else None


def _strict(shape: Any) -> Any:
    if isinstance(shape, type) and issubclass(shape, Struct):
        return _strict_struct(shape)
    parts = get_args(shape)
    strict = tuple(map(_strict, parts))
    if strict == parts:
        return shape
    origin = get_origin(shape)
    if origin in (Union, UnionType):
        return reduce(or_, strict)
    return Annotated[strict] if origin is Annotated else GenericAlias(origin, strict)


@cache
def _strict_struct(shape: type[Struct]) -> type[Struct]:
    """A subclass that declares anew the fields whose own shapes become strict."""
    hints = get_type_hints(shape, include_extras=True)
    changed: list[Any] = []
    for field in msgspec.structs.fields(shape):
        hint = hints[field.name]
        strict = _strict(hint)
        if strict is hint or strict == hint:
            continue
        again = _field(default=field.default, default_factory=field.default_factory)
        changed.append((field.name, strict) if field.required else (field.name, strict, again))
    config = shape.__struct_config__
    return msgspec.defstruct(
        shape.__name__,
        changed,
        bases=(shape,),
        frozen=config.frozen,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _fields(shape: Any, place: str) -> tuple[str, ...]:
    """The names of the fields of the object at a place, such as ``jobs[...].retention``."""
    for step in _STEP.finditer(f".{place}" if place and place[0] != "[" else place):
        inner = _held(shape)
        if step["field"] is None:
            shape = get_args(inner)[-1]
        else:
            hints = get_type_hints(inner, include_extras=True)
            shape = next(
                hints[f.name]
                for f in msgspec.structs.fields(inner)
                if f.encode_name == step["field"]
            )
    return tuple(_held(shape).__struct_encode_fields__)


def _held(shape: Any) -> Any:
    """The struct, list or mapping that a field may hold besides null."""
    if get_origin(shape) is Annotated:
        return _held(get_args(shape)[0])
    if get_origin(shape) in (Union, UnionType):
        return next(each for each in map(_held, get_args(shape)) if each is not None)
    is_struct = isinstance(shape, type) and issubclass(shape, Struct)
    return shape if is_struct or get_origin(shape) in (list, dict) else None
