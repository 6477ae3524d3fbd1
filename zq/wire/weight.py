"""How heavy a request body is: how many values it holds, and whether the event loop can read it.

A body that takes more than a slice of the loop is looked at elsewhere (`zq.http.reading`). What it
may hold at all is bounded before any of its values is made.
"""

from collections.abc import Iterator
from typing import Any

import msgpack

from zq.model.errors import TooManyValues
from zq.model.payload import STRING
from zq.wire.codecs import JSON, MSGPACK, integral

QUICK_BYTES = 16 * 1024
"""The size in bytes up to which a body is read on the loop unseen."""

LIGHT_BYTES = 256 * 1024
"""The size in bytes up to which a body is read on the loop unless it has too many arrays and
objects."""

HEAVY_BYTES = 1024 * 1024
"""A larger body is never read on the loop."""

LIGHT_VALUES = 50_000
"""The most values of a body between these sizes that is read on the loop."""

LIGHT_CONTAINERS = 10_000
"""The most arrays and objects of a body that is read on the loop. Each takes about 60 bytes of
memory for the one byte that is sent, and up to a microsecond to make."""

_BEFORE_VALUES = (b",", b"[", b"{")

_MSGPACK_HEADS = bytes(range(0x80, 0xA0)) + b"\xdc\xdd\xde\xdf"
"""The first bytes of MessagePack's arrays and maps."""


def is_light(body: bytes, kind: str) -> bool:
    """True if the loop may read a body, which is JSON or of another kind (a codec's name)."""
    if len(body) <= QUICK_BYTES:
        return True
    if len(body) > (HEAVY_BYTES if kind == JSON.name else LIGHT_BYTES):
        return False
    if most_containers(body, kind) > LIGHT_CONTAINERS:
        return False
    return len(body) <= LIGHT_BYTES or most_values(body) <= LIGHT_VALUES


def most_containers(body: bytes, kind: str) -> int:
    """An upper bound of the arrays and objects of a body, by the bytes with which they begin.

    Texts may hold these bytes too, so the bound may be too high.
    """
    if kind == JSON.name:
        return body.count(b"[") + body.count(b"{")
    return len(body) - len(body.translate(None, _MSGPACK_HEADS))


def most_values(body: bytes) -> int:
    """An upper bound of the values of a JSON text, by its commas and brackets.

    Each value but the first of an array or object has a comma before it, and each array or object
    has a bracket. Commas within strings count as well.
    """
    return sum(map(body.count, _BEFORE_VALUES)) + 1


def values_outside_strings(body: bytes, enough: int) -> int:
    """A closer bound, without what strings hold. It ends early once it is at most `enough`.

    Nothing of the body is copied: it may be large.
    """
    found = most_values(body)
    for string in STRING.finditer(body):
        if found <= enough:
            break
        found -= sum(body.count(each, *string.span()) for each in _BEFORE_VALUES)
    return found


def check_json(body: bytes, most: int) -> Iterator[bytes]:
    """Check a JSON body of up to `most` values. Yields nothing: the body stays as it is.

    Raises `InvalidRequest` or `TooManyValues`. It takes long, and runs aside.
    """
    if most_values(body) > most and values_outside_strings(body, most) > most:
        raise TooManyValues(most)
    JSON.to_json(body)
    yield from ()


def json_of_msgpack(body: bytes, most: int) -> Iterator[bytes]:
    """A MessagePack body of up to `most` values as JSON. It takes long, and runs aside.

    The sizes of arrays and maps are known before their values, and are added up as each ends. So at
    most twice `most` values are in memory. Raises `InvalidRequest` or `TooManyValues`.
    """
    left = most

    def count(ended: Any) -> Any:
        nonlocal left
        left -= len(ended) + 1
        if left < 0:
            raise TooManyValues(most)
        return ended

    bounds = {"max_array_len": most, "max_map_len": most}
    try:
        msgpack.unpackb(
            body,
            raw=False,
            ext_hook=msgpack.ExtType,
            strict_map_key=False,
            list_hook=count,
            object_hook=count,
            **bounds,
        )
    except (ValueError, RecursionError, msgpack.UnpackException) as error:
        if "max_array_len" in str(error) or "max_map_len" in str(error):
            raise TooManyValues(most) from None
        # The codec says what else is wrong.
    yield MSGPACK.to_json(body)


def request_json(body: bytes, most: int, kind: str) -> Iterator[bytes]:
    """A request body of up to `most` values as JSON in which integral floats are integers.

    `kind` is the name of its codec. Yields nothing if the body is such JSON already. Raises
    `InvalidRequest` or `TooManyValues`. It takes long, and runs aside.
    """
    if kind == JSON.name:
        for _ in check_json(body, most):
            pass
        text = body
    else:
        (text,) = json_of_msgpack(body, most)
    text = integral(text)
    if text != body:
        yield text


class CheckedJson:
    """The format of a body that was made by `request_json`: nothing in it is to be checked."""

    content_type = JSON.content_type

    def __init__(self, name: str, *, strict: bool = False) -> None:
        """`name` is that of the format in which the body was sent."""
        self.name = name
        self.strict = strict
        self.encode = JSON.encode

    def to_json(self, body: bytes) -> bytes:
        return body

    def begins_object(self, body: bytes) -> bool:
        return JSON.begins_object(body)

    def integral(self, text: bytes) -> bytes:
        return text


CHECKED = {codec.name: CheckedJson(codec.name) for codec in (JSON, MSGPACK)}
