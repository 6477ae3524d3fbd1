"""The payloads of jobs: message ids, bytes, the calls in them, and what converts their values."""

import base64
import inspect
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import msgspec

from zq.client.checks import value_check
from zq.client.errors import InvalidOption, InvalidPayload
from zq.client.formats import plain
from zq.client.hints import (
    ComesLater,
    Unevaluated,
    Unsupported,
    blocks_around,
    comes_later,
    hints_of,
    unreadable,
)
from zq.client.types import Convert, converter
from zq.wire.pushing import BYTES, TEXT, digest_of

_canonical = msgspec.json.Encoder(order="sorted", enc_hook=plain)


def new_id() -> str:
    """A message id that no other job has."""
    return str(uuid4())


def content_key(payload: Any) -> str:
    """A message id that is the same for equal payloads: 16 hex digits of SHA-256.

    It is computed from JSON with sorted keys, so the order of a dict's items does not matter.
    """
    return digest_of(_canonical.encode(payload))


def declared(
    what: str, annotation: Any, function: Callable[..., Any] | None = None
) -> Convert | None:
    """The converter of an annotation, perhaps one of a function: see `converter`.

    Raises `InvalidOption`, which begins with `what`. Raises `ComesLater` while the module of the
    function has yet to define a name.
    """
    try:
        if isinstance(annotation, Unevaluated):
            raise annotation.error
        return converter(annotation)
    except Unsupported as error:
        raise InvalidOption(f"{what}: {error}") from None
    except Exception as error:
        if comes_later(error, function):
            raise ComesLater(getattr(error, "name", "")) from None
        raise InvalidOption(f"{what}: {unreadable(error)}") from None


def taken(what: str, annotation: Any, function: Callable[..., Any] | None = None) -> Convert | None:
    """The converter of payloads that come from elsewhere, which are held to plain types as well.

    Raises what `declared` raises.
    """
    convert = declared(what, annotation, function)
    check = None if convert is not None else value_check(annotation)
    if check is None:
        return convert

    def checked(value: Any) -> Any:
        check(value)
        return value

    return checked


def taken_by(what: str, function: Callable[..., Any]) -> "Convert | Undecided | None":
    """The converter of payloads to the type of a handler's first parameter. See `taken`."""
    first = next(iter(inspect.signature(function).parameters), None)
    block = blocks_around(function)

    def read() -> Convert | None:
        hint = Any if first is None else hints_of(function, block).get(first, Any)
        return taken(what, hint, function)

    try:
        return read()
    except ComesLater:
        return Undecided(what, read)


class Undecided:
    """A converter to a type that names what its module has yet to define."""

    def __init__(self, what: str, read: Callable[[], Convert | None]) -> None:
        self._what = what
        self._read = read

    def decide(self) -> Convert | None:
        """The converter. Raises `InvalidOption`."""
        try:
            return self._read()
        except ComesLater as name:
            raise InvalidOption(f"{self._what}: {name} is not defined yet") from None


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
    the only one. The payloads of this library have both: an object of `args` and `kwargs`.
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
