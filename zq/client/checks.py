"""Checks the arguments of a call against plain annotations, before anything is sent."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import chain, repeat
from operator import or_
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import plain as as_plain
from zq.client.types import concrete
from zq.client.unions import UNIONS

SCALARS: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int, bool),
    float: (float, int),
    bool: (bool,),
    None: (type(None),),
    type(None): (type(None),),
}
"""The values that a worker takes for each plain type, as type checkers do: True is an int, 1 is a
float."""

_TEXT_KEYS = dict[str, Any]

KEYS = " (keys of objects are texts in JSON: annotate dict[int, …] to have them back)"

VARIABLE = "ZQ_CHECK_CALLS"
"""The variable for apps that do not say whether their calls are checked."""

WORDS = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def wanted(said: bool | None) -> bool:
    """True if calls are checked: as the app says, or else the variable. Raises `InvalidOption`."""
    word = os.environ.get(VARIABLE, "")
    if said is None and word.lower() not in WORDS:
        raise InvalidOption(f"{VARIABLE}={word!r}: give yes or no")
    return WORDS[word.lower()] if said is None else said


class _Plain(NamedTuple):
    """A parameter: types whose values surely fit, the type that others are compared with, and how a
    message about it begins."""

    scalars: tuple[type, ...]
    wanted: Any
    name: str


class CallCheck:
    """The plain annotations of a function. Arguments for other parameters are not looked at.

    Plain are str, int, float, bool, None and Literal, and lists, dicts and unions of these.
    """

    def __init__(self, name: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> None:
        """`name` is that of the function, and `hints` are its annotations."""
        self._name = name
        self._by_name: dict[str, _Plain | None] = {}
        self._by_place: list[_Plain | None] = []
        self._other_places: _Plain | None = None
        self._other_names: _Plain | None = None
        for name, parameter in signature.parameters.items():
            plain = _plain(hints.get(name, Any), f"{self._name}: {name}: ")
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._other_places = plain
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._other_names = plain
            else:
                if parameter.kind is not parameter.POSITIONAL_ONLY:
                    self._by_name[name] = plain
                if parameter.kind is not parameter.KEYWORD_ONLY:
                    self._by_place.append(plain)

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise `InvalidPayload` if an argument of a call, which fits, is not of its type."""
        places = chain(self._by_place, repeat(self._other_places))
        for value, known in zip(args, places, strict=False):
            if known is not None and not isinstance(value, known.scalars):
                _check(known, value)
        for name in kwargs:
            known = self._by_name.get(name, self._other_names)
            if known is not None and not isinstance(kwargs[name], known.scalars):
                _check(known, kwargs[name])


def value_check(annotation: Any) -> Callable[[Any], None] | None:
    """A function that raises `InvalidPayload` for values that are not of a plain type.

    None if the annotation is not plain.
    """
    known = _plain(annotation, "")
    if known is None:
        return None

    def check(value: Any) -> None:
        if not isinstance(value, known.scalars):
            _check(known, value)

    return check


def held_to(annotation: Any) -> Any:
    """The type that data for a plain annotation has; Any if the annotation is not plain."""
    wanted = _wanted(concrete(annotation))
    return Any if wanted is None else wanted


def _plain(annotation: Any, name: str) -> _Plain | None:
    hint = concrete(annotation)
    wanted = hint if _is_scalar(hint) else _wanted(hint)
    return None if wanted is None else _Plain(_scalars(hint), wanted, name)


def _check(known: _Plain, value: Any) -> None:
    if known.wanted == _TEXT_KEYS and isinstance(value, dict) and all(map(_is_text, value)):
        return
    try:
        sent = msgspec.to_builtins(value, enc_hook=as_plain)
    except (TypeError, ValueError):
        return  # It cannot be sent, which is told when it is encoded.
    try:
        msgspec.convert(sent, known.wanted)
    except msgspec.ValidationError as error:
        hint = KEYS if "got `int` - at `key`" in str(error) else ""
        raise InvalidPayload(f"{known.name}{error}{hint}") from None


def _is_text(key: Any) -> bool:
    return isinstance(key, str)


def _scalars(annotation: Any) -> tuple[type, ...]:
    """The types whose values fit without a closer look."""
    if get_origin(annotation) in UNIONS:
        return tuple({kind for part in get_args(annotation) for kind in _scalars(part)})
    return SCALARS[annotation] if _is_scalar(annotation) else ()


def _is_scalar(annotation: Any) -> bool:
    return get_origin(annotation) is None and annotation in SCALARS


def _wanted(annotation: Any) -> Any:
    """The type for a closer look; None if the annotation is not plain."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return annotation
    if annotation is dict or (origin is dict and parts[0] is Any):
        origin, parts = dict, (str, parts[1] if parts else Any)  # Keys are texts in JSON.
    if origin is dict and parts[0] is not str:
        return None
    if origin in UNIONS or origin in (list, dict):
        inner = [Any if part is Any and origin not in UNIONS else _wanted(part) for part in parts]
        if None in inner:
            return None
        return reduce(or_, inner) if origin in UNIONS else origin[tuple(inner)]
    if _is_scalar(annotation):
        return reduce(or_, SCALARS[annotation])
    return annotation if annotation is list else None
