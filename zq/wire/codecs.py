"""JSON and MessagePack as one data model: JSON's. Strict at the door, fast inside.

Numbers are finite, integers lie within -2**63 and 2**64 - 1, and text is valid Unicode.
MessagePack's `bin` and `ext` are not allowed. A value that is accepted in one format can be
delivered in the other and compares equal.
"""

import math
import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Protocol, TypeVar

import msgpack
import msgspec

from zq.model.errors import InvalidRequest
from zq.model.payload import MAX_DEPTH, has_long_integer
from zq.wire.strict import refuse_unknown, strict_decoder

T = TypeVar("T")


class BodyCodec(Protocol):
    """One of the two formats."""

    name: str
    content_type: str
    strict: bool
    """True if a body in this format may have no field that its shape lacks."""

    def to_json(self, body: bytes) -> bytes:
        """A request body as JSON text. Every value in it is known to be valid."""

    def begins_object(self, body: bytes) -> bool:
        """True if a request body would be an object if it is valid."""

    def integral(self, text: bytes) -> bytes:
        """A body that `to_json` has returned, with integral floats as integers: see `integral`."""

    def encode(self, document: object) -> bytes:
        """A document of dicts, lists, scalars and the structs of `zq.wire.documents`."""


_OBJECT = re.compile(rb"[ \t\r\n]*\{")


class _Json:
    name = "JSON"
    content_type = "application/json"

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.encode: Callable[[object], bytes] = msgspec.json.Encoder().encode

    def to_json(self, body: bytes) -> bytes:
        try:
            msgspec.json.decode(body)
        except UnicodeDecodeError:
            raise InvalidRequest("invalid JSON: text must be valid UTF-8") from None
        except msgspec.DecodeError as error:
            raise _at(error, InvalidRequest(f"invalid JSON: {_malformed(body, error)}")) from None
        except RecursionError:
            raise InvalidRequest(f"invalid JSON: {_TOO_DEEP}") from None
        # The parser has refused everything else that the model does not allow.
        if has_long_integer(body):
            raise InvalidRequest(f"invalid {self.name}: {_OUT_OF_RANGE}")
        return body

    def begins_object(self, body: bytes) -> bool:
        return _OBJECT.match(body) is not None

    def integral(self, text: bytes) -> bytes:
        return integral(text)


class _MessagePack:
    name = "MessagePack"
    content_type = "application/msgpack"

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict

    def to_json(self, body: bytes) -> bytes:
        try:
            value = msgpack.unpackb(body, raw=False, ext_hook=_refuse_ext)
        except RecursionError:
            raise InvalidRequest(f"invalid MessagePack: {_TOO_DEEP}") from None
        except (ValueError, msgpack.UnpackException) as error:
            message = "nested too deeply" if isinstance(error, msgpack.StackError) else str(error)
            reason = message or "the data ends early"
            raise InvalidRequest(f"invalid MessagePack: {_lower(reason)}") from None
        _check(value, self.name)
        return msgspec.json.encode(value)

    def begins_object(self, body: bytes) -> bool:
        # fixmap, map 16, map 32
        return bool(body) and (0x80 <= body[0] <= 0x8F or body[0] in (0xDE, 0xDF))

    def integral(self, text: bytes) -> bytes:
        return integral(text)

    def encode(self, document: object) -> bytes:
        packed: bytes = msgpack.packb(document, default=_plain)
        return packed


JSON: BodyCodec = _Json()
MSGPACK: BodyCodec = _MessagePack()

STRICT: dict[str, BodyCodec] = {
    JSON.name: _Json(strict=True),
    MSGPACK.name: _MessagePack(strict=True),
}
"""The formats for clients that want unknown fields refused."""

_KEYS = frozenset((str,))
_ALLOWED = frozenset((type(None), bool, int, float, str, list, dict))

_OUT_OF_RANGE = "integers must lie within -2^63 and 2^64-1"
_TOO_DEEP = f"values may nest up to {MAX_DEPTH} deep"


def _check(value: object, name: str) -> None:
    """Refuse values that the data model does not allow. The integers of MessagePack are in range.

    The values of each depth are looked at together: a look at one value after the other takes ten
    times as long as decoding them.
    """
    lists: list[list[Any]] = [[value]]
    maps: list[dict[Any, Any]] = []
    while lists or maps:
        if not _KEYS.issuperset(map(type, chain.from_iterable(maps))):
            raise InvalidRequest(f"invalid {name}: map keys must be strings")
        kinds = set(map(type, _values(lists, maps)))
        if float in kinds and not all(map(math.isfinite, _of(float, lists, maps))):
            raise InvalidRequest(f"invalid {name}: numbers must be finite")
        if bytes in kinds:
            raise InvalidRequest(f"invalid {name}: binary values are not allowed, send text")
        if not _ALLOWED.issuperset(kinds):
            raise InvalidRequest(f"invalid {name}: extension types are not allowed")
        lists, maps = (
            _of(list, lists, maps) if list in kinds else [],
            _of(dict, lists, maps) if dict in kinds else [],
        )


def _values(lists: list[list[Any]], maps: list[dict[Any, Any]]) -> Iterable[Any]:
    return chain(chain.from_iterable(lists), chain.from_iterable(map(dict.values, maps)))


def _of(kind: type[T], lists: list[list[Any]], maps: list[dict[Any, Any]]) -> list[T]:
    return [value for value in _values(lists, maps) if type(value) is kind]


def decode(body: bytes, codec: BodyCodec, decoder: msgspec.json.Decoder[T]) -> T:
    """A request body as a typed value. Raises `InvalidRequest` with the faulty field.

    Integral floats are accepted as integers, since Zizq's Ruby client sends milliseconds as floats.
    """
    text = codec.to_json(body)
    try:
        return _typed(text, codec, decoder)
    except msgspec.ValidationError as error:
        if "got `float`" in str(error):
            try:
                return _typed(codec.integral(text), codec, decoder)
            except msgspec.ValidationError as again:
                error = again
        refuse_unknown(error, decoder.type, f"invalid {codec.name}: ")
        refusal = InvalidRequest(f"invalid {codec.name}: {explain(error)}")
        raise _at(error, refusal) from None


def _typed(text: bytes, codec: BodyCodec, decoder: msgspec.json.Decoder[T]) -> T:
    if codec.strict:
        # A strict shape is another type, which compares unequal. So it only checks.
        strict_decoder(decoder.type).decode(text)
    return decoder.decode(text)


def explain(error: msgspec.ValidationError) -> str:
    """msgspec's message with the place first: ``jobs[3].priority: expected int, got str``."""
    message, _, place = str(error).replace("`", "").partition(" - at $")
    place = place.lstrip(".")
    return f"{place}: {_lower(message)}" if place else _lower(message)


_INTEGRAL_LEVELS = 8
"""No field that is an integer lies deeper in a body. What is deeper is not looked at: each level
copies what is in it."""

_PASSED_ON = frozenset({"payload", "result", "meta", "data"})
_INTEGRAL = re.compile(rb"(-?[0-9]+)\.0+\Z")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_items = msgspec.json.Decoder(list[msgspec.Raw])


def integral(text: bytes) -> bytes:
    """A valid JSON text with integral floats as integers, except in values that are passed on.

    It takes about a microsecond for each value beside a float.
    """
    return msgspec.json.encode(_integral_field("", msgspec.Raw(text.strip()), _INTEGRAL_LEVELS))


def _integral_field(key: str, raw: msgspec.Raw, levels: int) -> object:
    text = bytes(raw)
    if b".0" not in text or key in _PASSED_ON or not levels:
        return raw
    if match := _INTEGRAL.match(text):
        return msgspec.Raw(match[1])
    if text.startswith(b"{"):
        fields = _fields.decode(text)
        return {name: _integral_field(name, field, levels - 1) for name, field in fields.items()}
    if text.startswith(b"["):
        items = _items.decode(text)
        return [_integral_field("", item, levels - 1) for item in items]
    return raw


def _refuse_ext(_code: int, _data: bytes) -> object:
    raise ValueError("extension types are not allowed")


def _plain(value: object) -> object:
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, msgspec.Struct):
        fields = zip(value.__struct_fields__, msgspec.structs.astuple(value), strict=True)
        return {
            name: field
            for name, field in fields
            if field is not None and field is not msgspec.UNSET
        }
    raise TypeError(f"no place in a document for {type(value).__name__}")


_JOB_INDEX = re.compile(r"\$(?:\[\.\.\.\]|\.jobs)\[(\d+)\]")


def _at(error: msgspec.DecodeError, refusal: InvalidRequest) -> InvalidRequest:
    """The refusal, with the index of the job in which a bulk is at fault, if that is known."""
    if index := _JOB_INDEX.search(str(error)):
        refusal.index = int(index[1])
    return refusal


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _malformed(body: bytes, error: msgspec.DecodeError) -> str:
    message, _, place = str(error).partition(" - at ")
    if index := _JOB_INDEX.search(place):
        return f"jobs[{index[1]}]: {_lower(message)}"
    if "truncated" in message and _SURROGATE.search(body):
        return "text must not hold lone surrogates"
    return _lower(message).removeprefix("JSON is malformed: ")


def _lower(message: str) -> str:
    return message if message[:2].isupper() else message[:1].lower() + message[1:]
