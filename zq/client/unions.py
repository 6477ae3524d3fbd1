"""Unions whose values JSON would not tell apart."""

import re
import types
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect as shapes

UNIONS = (Union, types.UnionType)

_OBJECTS = (shapes.DictType, shapes.TypedDictType, shapes.DataclassType, shapes.StructType)


def shown(annotation: Any) -> str:
    """An annotation as people write it."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation.__qualname__
    return re.sub(r"(?:[\w<>]+\.)+(?=\w)|~", "", str(annotation))  # without the names of modules


def is_model(annotation: Any) -> bool:
    """True if a type is a model of pydantic."""
    return isinstance(annotation, type) and hasattr(annotation, "model_validate")


def clash_in(annotation: Any) -> str | None:
    """Which members of a union in an annotation look the same in JSON, and what to do about it.

    None if there are none. The fields of classes are not looked at.
    """
    if get_origin(annotation) is Literal:
        return None
    told = False
    if get_origin(annotation) is Annotated:
        annotation, *notes = get_args(annotation)
        told = any(getattr(note, "discriminator", None) for note in notes)
    if get_origin(annotation) in UNIONS and not told:
        for one, other in combinations(_members(annotation), 2):
            if (remedy := _clash(one, other)) is not None:
                return f"JSON would not tell {shown(one)} from {shown(other)}: {remedy}"
    return next(filter(None, map(clash_in, get_args(annotation))), None)


def _members(annotation: Any) -> Iterator[Any]:
    for each in get_args(annotation):
        if get_origin(each) in UNIONS:
            yield from _members(each)
        else:
            yield each


def _clash(one: Any, other: Any) -> str | None:
    """The advice for two types that look the same in JSON; None if they differ, or hold no data."""
    if is_model(one) and is_model(other):
        alike = _may_be(one, other) or _may_be(other, one)
        return "choose one of them, or give both a Literal that differs" if alike else None
    if is_model(one) or is_model(other):
        other = one if is_model(other) else other
        return "choose one of them" if isinstance(_shape(other), _OBJECTS) else None
    first, second = _shape(one), _shape(other)
    if first is None or second is None:
        return None
    try:
        msgspec.json.Decoder(Union[one, other])  # noqa: UP007
    except TypeError:
        if isinstance(first, _OBJECTS) and isinstance(second, _OBJECTS):
            return "choose one of them, or use structs of msgspec with a tag"
        return "choose one of them"
    return None


def _shape(annotation: Any) -> Any:
    """The description that msgspec gives of a type; None if it does not convert to it."""
    try:
        shape = shapes.type_info(annotation)
    except (TypeError, NameError):
        return None
    return None if isinstance(shape, shapes.CustomType) else shape


def _may_be(one: Any, other: Any) -> bool:
    """True if pydantic may read as `other` what was written as the model `one`."""
    ours, theirs = one.model_fields, other.model_fields
    for name in ours.keys() & theirs.keys():
        kinds = ours[name].annotation, theirs[name].annotation
        if all(get_origin(kind) is Literal for kind in kinds) and not (
            set(get_args(kinds[0])) & set(get_args(kinds[1]))
        ):
            return False
    needed = {name for name, field in theirs.items() if field.is_required()}
    return needed <= set(ours) <= set(theirs)
