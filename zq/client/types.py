"""Annotations of parameters and results: what a value becomes again after it was sent as JSON.

A converter is built from an annotation when a function is declared. An annotation that JSON cannot
give back is refused there: two kinds of text in one union, for example, or a class that cannot be
made from data.
"""

import types
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from functools import lru_cache, reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    ParamSpecArgs,
    ParamSpecKwargs,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import msgspec
from msgspec import inspect as shapes

from zq.client.errors import InvalidPayload

Convert = Callable[[Any], Any]

UNIONS = (Union, types.UnionType)

_CONCRETE: Mapping[Any, type] = {
    **dict.fromkeys((Iterable, Collection, Sequence, MutableSequence), list),
    **dict.fromkeys((Set, MutableSet), set),
    **dict.fromkeys((Mapping, MutableMapping), dict),
}
"""What comes back where an annotation names an abstract container."""

_PLAIN = (
    *(shapes.AnyType, shapes.NoneType, shapes.BoolType, shapes.IntType, shapes.FloatType),
    *(shapes.StrType, shapes.LiteralType, shapes.ListType, shapes.DictType, shapes.UnionType),
)
_KEYS = (
    *(shapes.AnyType, shapes.StrType, shapes.IntType, shapes.FloatType, shapes.EnumType),
    *(shapes.UUIDType, shapes.DateTimeType, shapes.DateType, shapes.TimeType),
    *(shapes.DecimalType, shapes.LiteralType, shapes.BytesType, shapes.TimeDeltaType),
)
"""The types of keys that the texts of JSON's keys can be turned into."""


class Unsupported(Exception):
    """An annotation whose values JSON cannot give back. The message says why, and what to write."""


def converter(annotation: Any) -> Convert | None:
    """The function that turns data into a value of an annotated type; None if data is such a value.

    The function raises `InvalidPayload`. Raises `Unsupported`.
    """
    annotation = concrete(annotation)
    if _needs_pydantic(annotation):
        return _pydantic(annotation)
    try:
        shape = shapes.type_info(annotation)
        msgspec.json.Decoder(annotation)
    except TypeError as error:
        raise Unsupported(_reason(error)) from None
    custom = [each.cls for each in _parts(shape) if isinstance(each, shapes.CustomType)]
    if any(map(_is_model, custom)):
        return _pydantic(annotation)
    if custom:
        raise Unsupported(
            f"{_name(custom[0])} cannot be made from JSON: use a dataclass, a msgspec.Struct, a"
            " pydantic model, or a type that msgspec knows, such as list, UUID or datetime"
        )
    for each in _parts(shape):
        if isinstance(each, shapes.DictType) and not _is_key(each.key_type):
            raise Unsupported(
                "the keys of JSON's objects are texts, and these keys cannot be made from one: use"
                " keys of str, int, float, an enum, UUID or a date"
            )
    if is_plain(annotation):
        return None

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, annotation, str_keys=True)
        except msgspec.ValidationError as error:
            raise InvalidPayload(str(error)) from error

    return convert


def is_plain(annotation: Any) -> bool:
    """Whether data needs no conversion: scalars, and lists, dicts by text and unions of these."""
    return all(
        isinstance(each, _PLAIN)
        and not (isinstance(each, shapes.DictType) and _is_rich_key(each.key_type))
        and not _is_constrained(each)
        for each in _parts(shapes.type_info(annotation))
    )


def concrete(annotation: Any) -> Any:
    """An annotation with lists, sets and dicts in place of abstract containers."""
    if annotation is object:
        return Any
    if isinstance(annotation, ParamSpecArgs | ParamSpecKwargs):
        return Any
    if isinstance(annotation, NewType):
        return concrete(annotation.__supertype__)
    if isinstance(annotation, TypeVar):
        if annotation.__constraints__:
            return reduce(or_, map(concrete, annotation.__constraints__))
        return Any if annotation.__bound__ is None else concrete(annotation.__bound__)
    origin = get_origin(annotation)
    if origin is None:
        return _CONCRETE.get(annotation, annotation) if _is_hashable(annotation) else annotation
    if origin is Literal:
        return annotation
    if origin is Annotated:
        base, *notes = get_args(annotation)
        return Annotated[(concrete(base), *notes)]
    parts = tuple(each if each is ... else concrete(each) for each in get_args(annotation))
    if origin in UNIONS:
        return reduce(or_, parts)
    if origin in _CONCRETE or origin in (list, set, frozenset, dict, tuple):
        return _CONCRETE.get(origin, origin)[parts]
    return annotation


def shown(annotation: Any) -> str:
    """An annotation as people write it."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__
    return str(annotation).replace("typing.", "")


def _parts(shape: Any, seen: set[Any] | None = None) -> Iterator[Any]:
    """A type and all that it is made of, each once."""
    seen = set() if seen is None else seen
    cls = getattr(shape, "cls", None)
    if cls is not None and not isinstance(shape, shapes.CustomType):
        if cls in seen:
            return
        seen.add(cls)
    yield shape
    inner = [getattr(shape, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    inner += [*getattr(shape, "types", ()), *getattr(shape, "item_types", ())]
    inner += [field.type for field in getattr(shape, "fields", ())]
    for each in inner:
        if isinstance(each, shapes.Type):
            yield from _parts(each, seen)


def _is_key(shape: Any) -> bool:
    if isinstance(shape, shapes.UnionType):
        return all(map(_is_key, shape.types))
    return isinstance(shape, _KEYS)


def _is_rich_key(shape: Any) -> bool:
    return not isinstance(shape, shapes.StrType | shapes.AnyType | shapes.LiteralType)


def _is_constrained(shape: Any) -> bool:
    names = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
    return any(getattr(shape, name, None) is not None for name in names)


def _is_hashable(annotation: Any) -> bool:
    return getattr(annotation, "__hash__", None) is not None


def _name(cls: Any) -> str:
    return str(getattr(cls, "__name__", cls))


def _reason(error: TypeError) -> str:
    """msgspec's reason, with what to do about the most common one."""
    reason = str(error).split(" - type ")[0].replace("`", "")
    if reason.startswith("Enums"):
        return f"{reason}: give the members such values"
    if "more than one" not in reason and "tagged" not in reason:
        return reason
    return f"JSON would not tell which of its types a value was ({reason}): choose one of them"


# pydantic, where the program uses it


def _needs_pydantic(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        base, *notes = get_args(annotation)
        return any(map(_is_constraint, notes)) or _needs_pydantic(base)
    if _is_model(annotation):
        return True
    origin = get_origin(annotation)
    return origin is not Literal and any(map(_needs_pydantic, get_args(annotation)))


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "model_validate")


def _is_constraint(note: Any) -> bool:
    """Whether a note of `Annotated` limits values in the way of pydantic."""
    return type(note).__module__.partition(".")[0] in ("annotated_types", "pydantic")


def _pydantic(annotation: Any) -> Convert:
    try:
        from pydantic import TypeAdapter, ValidationError
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise Unsupported(
            "its constraints are those of pydantic, which is not installed: install it, or use"
            " msgspec.Meta"
        ) from None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    except PydanticUserError as error:
        raise Unsupported(f"pydantic cannot use it: {error}") from None
    if _has_secret(adapter.json_schema):
        raise Unsupported(SECRET)

    def convert(value: Any) -> Any:
        # As JSON: a strict model takes a text for a time from JSON only.
        try:
            return adapter.validate_json(msgspec.json.encode(value))
        except ValidationError as error:
            raise InvalidPayload(str(error)) from error

    return convert


SECRET = (
    "it has a secret (SecretStr or SecretBytes), which would be stored readable or as stars: send a"
    " name by which the worker finds the secret"
)


@lru_cache(maxsize=1_000)
def is_secret(model: type) -> bool:
    """Whether a model of pydantic has a field whose value must not be stored."""
    return _has_secret(model.model_json_schema)  # type: ignore[attr-defined]


def _has_secret(schema: Callable[[], Any]) -> bool:
    try:
        left = [schema()]
    except Exception:  # some types have no schema, such as those of a program's own validators
        return False
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if part.get("format") == "password" and part.get("writeOnly"):
                return True
            left += part.values()
        elif isinstance(part, list):
            left += part
    return False
