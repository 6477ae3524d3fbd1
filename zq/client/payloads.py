"""Converts calls to payloads and back: binds arguments, and converts values to annotated types."""

import base64
import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, get_args, get_origin
from uuid import UUID, uuid4

import msgspec

from zq.client.checks import CallCheck
from zq.client.errors import InvalidPayload
from zq.client.formats import plain
from zq.wire.pushing import BYTES, TEXT, digest_of

Convert = Callable[[Any], Any]

_RICH = (
    *(msgspec.Struct, enum.Enum, datetime, date, time, timedelta, Decimal, UUID),
    *(bytes, bytearray, set, frozenset, tuple),
)
_canonical = msgspec.json.Encoder(order="sorted", enc_hook=plain)


def new_id() -> str:
    """A message id that no other job has."""
    return str(uuid4())


def content_key(payload: Any) -> str:
    """A message id that is the same for equal payloads: 16 hex digits of SHA-256.

    It is computed from JSON with sorted keys, so the order of a dict's items does not matter.
    """
    return digest_of(_canonical.encode(payload))


def converter(annotation: Any) -> Convert | None:
    """The function that converts plain data to an annotated type; None if it is not needed.

    It is needed for types that differ from plain data: structs of msgspec, models of pydantic,
    dataclasses, enums, times, UUIDs, Decimals, bytes, sets and tuples, or containers of these. The
    function raises `InvalidPayload`.
    """
    leaves = list(_leaves(annotation))
    if any(hasattr(leaf, "model_validate") for leaf in leaves):
        return _pydantic(annotation)
    if not any(_is_rich(leaf) for leaf in leaves):
        return None

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, annotation)
        except msgspec.ValidationError as error:
            raise InvalidPayload(str(error)) from error

    return convert


def _pydantic(annotation: Any) -> Convert:
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def convert(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            raise InvalidPayload(str(error)) from error

    return convert


def _leaves(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is None:
        yield annotation
        return
    yield origin
    for argument in get_args(annotation):
        yield from _leaves(argument)


def _is_rich(leaf: Any) -> bool:
    return isinstance(leaf, type) and (issubclass(leaf, _RICH) or dataclasses.is_dataclass(leaf))


def packed(payload: Any) -> tuple[Any, str | None]:
    """A payload as data that can be sent, and the media type for its original type, if any."""
    if isinstance(payload, bytes | bytearray | memoryview):
        return base64.b64encode(payload).decode(), BYTES
    return payload, TEXT if isinstance(payload, str) else None


def unpacked(payload: Any, content_type: str | None) -> Any:
    """Reverse `packed`. Raises `InvalidPayload`."""
    if content_type != BYTES:
        return payload
    try:
        return base64.b64decode(payload, validate=True)
    except (TypeError, ValueError) as error:
        raise InvalidPayload(
            f"the payload is of type {BYTES} but is not base64 text: {error}"
        ) from error


def call_of(payload: Any) -> tuple[list[Any], dict[str, Any]]:
    """The positional and the named arguments in a payload, whoever has written it.

    An object has named arguments, a list has positional ones, null has none, and any other value is
    the only one. The payloads of `Signature.payload` have both: an object of `args` and `kwargs`.
    """
    if _is_own(payload):
        return payload["args"], payload["kwargs"]
    if isinstance(payload, dict):
        return [], payload
    if isinstance(payload, list):
        return payload, {}
    return [] if payload is None else [payload], {}


def _is_own(payload: Any) -> bool:
    return (
        isinstance(payload, dict)
        and payload.keys() == _OWN
        and isinstance(payload["args"], list)
        and isinstance(payload["kwargs"], dict)
    )


_OWN = {"args", "kwargs"}


class Signature:
    """The parameters of a function: checks calls, and turns payloads into arguments."""

    def __init__(self, function: Callable[..., Any], *, checks: bool = True) -> None:
        """With `checks`, calls are held to plain annotations: see `zq.client.checks`."""
        self._function = function
        self._checks = checks
        self._check: CallCheck | None = None
        self._signature = inspect.signature(function)
        kinds = self._signature.parameters.values()
        positional = [each for each in kinds if each.kind in (each.POSITIONAL_ONLY, _EITHER)]
        needed = [each for each in positional if each.default is each.empty]
        plain_kinds = all(each.kind is not each.KEYWORD_ONLY for each in kinds)
        # Calls with positional arguments only are the most common, and cheap to check.
        self._fit = range(len(needed), len(positional) + 1) if plain_kinds else range(0)
        self._converters: dict[str, Convert] | None = None
        self._result: tuple[Convert | None] | None = None

    def __reduce__(self) -> tuple[Any, tuple[Callable[..., Any]]]:
        return partial(Signature, checks=self._checks), (self._function,)

    def payload(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The payload of a call.

        Raises TypeError if the function does not accept the arguments, and `InvalidPayload` if one
        is not of its annotated type.
        """
        if kwargs or len(args) not in self._fit:
            self._bound(args, kwargs)
        if self._checks:
            self._checked()(args, kwargs)
        return {"args": args, "kwargs": kwargs}

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The same with all arguments by name, also those with defaults.

        Positional-only parameters are kept as positional arguments.
        """
        bound = self._bound(args, kwargs)
        if self._checks:
            self._checked()(args, kwargs)
        bound.apply_defaults()
        if any(each.kind not in _BY_NAME for each in self._signature.parameters.values()):
            return {"args": bound.args, "kwargs": bound.kwargs}
        return {"args": (), "kwargs": bound.arguments}

    def arguments(self, payload: Any) -> tuple[list[Any], dict[str, Any]]:
        """The call in a payload: see `call_of`. Raises `InvalidPayload`."""
        args, kwargs = call_of(payload)
        if self._plain() and not kwargs and len(args) in self._fit:
            return args, kwargs
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidPayload(
                f"the payload does not fit {self._name}: {error} (an object holds named arguments,"
                " a list positional ones)"
            ) from error
        for name, convert in self._by_name().items():
            if name in bound.arguments:
                bound.arguments[name] = self._converted(name, convert, bound.arguments[name])
        return list(bound.args), bound.kwargs

    def result(self) -> Convert | None:
        """A converter from a stored result to the annotated type of the function's result."""
        if self._result is None:
            self._result = (converter(self._hints().get("return")),)
        return self._result[0]

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}: {error}") from None

    def _checked(self) -> CallCheck:
        # Not before the first call: an annotation may name what comes later in its module.
        if self._check is None:
            self._check = CallCheck(self._function, self._signature)
        return self._check

    @property
    def _name(self) -> str:
        return self._function.__qualname__

    def _plain(self) -> bool:
        return not self._by_name()

    def _by_name(self) -> Mapping[str, Convert]:
        if self._converters is None:
            hints = self._hints()
            found = {}
            for name, parameter in self._signature.parameters.items():
                variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
                convert = None if variable else converter(hints.get(name))
                if convert is not None:
                    found[name] = convert
            self._converters = found
        return self._converters

    def _hints(self) -> dict[str, Any]:
        return typing.get_type_hints(self._function)

    def _converted(self, name: str, convert: Convert, value: Any) -> Any:
        try:
            return convert(value)
        except InvalidPayload as error:
            raise InvalidPayload(f"{self._name}: {name}: {error.message}") from error


_EITHER = inspect.Parameter.POSITIONAL_OR_KEYWORD
_BY_NAME = (_EITHER, inspect.Parameter.KEYWORD_ONLY)
