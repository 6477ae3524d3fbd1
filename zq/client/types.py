"""Annotations of parameters and results: what a value becomes again after it was sent as JSON.

A converter is built from an annotation when a function is declared. An annotation that JSON cannot
give back is refused there: two kinds of text in one union, for example, or a class that cannot be
made from data.
"""

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
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    ParamSpecArgs,
    ParamSpecKwargs,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec import inspect as shapes

from zq.client.errors import InvalidPayload
from zq.client.hints import Unsupported
from zq.client.models import model_converter, needs_pydantic
from zq.client.unions import UNIONS, clash_in, is_model

Convert = Callable[[Any], Any]

_CONCRETE: Mapping[Any, type] = {
    **dict.fromkeys((Iterable, Collection, Sequence, MutableSequence), list),
    **dict.fromkeys((Set, MutableSet), set),
    **dict.fromkeys((Mapping, MutableMapping), dict),
}
"""The container that is made for an annotation that names an abstract one."""

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

_FORMS: Mapping[Any, frozenset[str]] = {
    shapes.NoneType: frozenset({"NoneType"}),
    shapes.BoolType: frozenset({"bool"}),
    shapes.IntType: frozenset({"int", "bool"}),
    shapes.FloatType: frozenset({"float", "int"}),
    **dict.fromkeys(
        (
            *(shapes.StrType, shapes.BytesType, shapes.DateTimeType, shapes.DateType),
            *(shapes.TimeType, shapes.TimeDeltaType, shapes.UUIDType, shapes.DecimalType),
        ),
        frozenset({"str"}),
    ),
    **dict.fromkeys(
        (
            *(shapes.ListType, shapes.SetType, shapes.FrozenSetType, shapes.VarTupleType),
            *(shapes.TupleType, shapes.NamedTupleType),
        ),
        frozenset({"list"}),
    ),
    **dict.fromkeys(
        (shapes.DictType, shapes.TypedDictType, shapes.DataclassType, shapes.StructType),
        frozenset({"dict"}),
    ),
}
EVERY_FORM = frozenset[str]().union(*_FORMS.values())

_RECORDS = (
    *(shapes.DataclassType, shapes.StructType, shapes.NamedTupleType, shapes.TypedDictType),
)


def converter(annotation: Any) -> Convert | None:
    """The function that turns data into a value of an annotated type; None if data is such a value.

    The function raises `InvalidPayload`. Raises `Unsupported`.
    """
    annotation = concrete(annotation)
    if (clash := clash_in(annotation)) is not None:
        raise Unsupported(clash)
    if needs_pydantic(annotation):
        return model_converter(annotation)
    try:
        shape = shapes.type_info(annotation)
        msgspec.json.Decoder(annotation)
    except TypeError as error:
        raise Unsupported(_reason(error)) from None
    classes = [each.cls for each in _parts(shape) if isinstance(each, _RECORDS)]
    custom = [each.cls for each in _parts(shape) if isinstance(each, shapes.CustomType)]
    if any(map(is_model, custom)) or any(map(_has_model, classes)):
        return model_converter(annotation)
    if custom:
        raise Unsupported(
            f"{_name(custom[0])} cannot be made from JSON: use a dataclass, a msgspec.Struct, a"
            " pydantic model, or a type that msgspec knows, such as list, UUID or datetime"
        )
    for cls in classes:
        if private := [name for name in _fields_of_attrs(cls) if name.startswith("_")]:
            raise Unsupported(
                f"the field {private[0]} of {_name(cls)} is private, and is not sent: give it a"
                " name without the underscore"
            )
    for each in _parts(shape):
        if isinstance(each, shapes.DictType) and not _is_key(each.key_type):
            raise Unsupported(
                "the keys of JSON's objects are texts, and these keys cannot be made from one: use"
                " keys of str, int, float, an enum, UUID or a date"
            )
    if is_plain(annotation):
        return None

    return ByMsgspec(annotation)


@dataclass(frozen=True)
class ByMsgspec:
    """Turns data into a value of a type that msgspec knows."""

    type: Any

    def __call__(self, value: Any) -> Any:
        """Raises `InvalidPayload`."""
        try:
            return msgspec.convert(value, self.type, str_keys=True)
        except msgspec.ValidationError as error:
            raise InvalidPayload(str(error)) from error


def is_plain(annotation: Any) -> bool:
    """True if data needs no conversion: scalars, and lists, dicts by text and unions of these."""
    return all(
        isinstance(each, _PLAIN)
        and not (isinstance(each, shapes.DictType) and _is_rich_key(each.key_type))
        and not _is_constrained(each)
        for each in _parts(shapes.type_info(annotation))
    )


def forms_of(annotation: Any) -> frozenset[str]:
    """The JSON forms that values of a type can have, such as text or list. True is an int, 1 a
    float."""
    shape = shapes.type_info(concrete(annotation))
    return frozenset[str]().union(*map(_forms, getattr(shape, "types", [shape])))


def _forms(shape: Any) -> frozenset[str]:
    if isinstance(shape, shapes.EnumType):
        return frozenset({type(each.value).__name__ for each in shape.cls})
    if isinstance(shape, shapes.LiteralType):
        return frozenset({type(each).__name__ for each in shape.values})
    if getattr(shape, "array_like", False):
        return frozenset({"list"})
    return _FORMS.get(type(shape), EVERY_FORM)


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
        kind = _CONCRETE.get(origin, origin)
        return kind[parts] if parts else kind
    return annotation


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
    return isinstance(shape, _KEYS)  # In a union, 1 and "1" would be the same key.


def _has_model(cls: Any) -> bool:
    """True if pydantic has to make this class: its own, or one with constraints on fields."""
    if hasattr(cls, "__pydantic_core_schema__"):
        return True
    return any(
        map(needs_pydantic, get_type_hints(get_origin(cls) or cls, include_extras=True).values())
    )


def _fields_of_attrs(cls: Any) -> list[str]:
    return [each.name for each in getattr(cls, "__attrs_attrs__", ())]


def _is_rich_key(shape: Any) -> bool:
    return not isinstance(shape, shapes.StrType | shapes.AnyType | shapes.LiteralType)


def _is_constrained(shape: Any) -> bool:
    names = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
    return any(getattr(shape, name, None) is not None for name in names)


def _is_hashable(annotation: Any) -> bool:
    return getattr(type(annotation), "__hash__", None) is not None


def _name(cls: Any) -> str:
    return str(getattr(cls, "__name__", cls))


def _reason(error: TypeError) -> str:
    """Why msgspec refuses an annotation, in the words of a program's author."""
    reason = str(error).split(" - type ")[0].replace("`", "")
    if reason.startswith("Enums"):
        return f"{reason}: give the members such values"
    if "more than one" not in reason and "tagged" not in reason:
        return reason
    return f"JSON would not tell which of its types a value was ({reason}): choose one of them"
