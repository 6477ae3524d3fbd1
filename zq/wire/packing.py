"""What clients have stored, from the JSON that it is kept as into MessagePack.

Documents have it as `msgspec.Raw`. Large JSON is packed piece by piece, so that whoever sends a
document can serve others between two pieces.
"""

import re
import struct
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

PIECE = 16 * 1024
"""Values are made of so many characters of JSON at a time: of 8,000 values at most."""


def without_head(packed: bytes) -> bytes:
    """The members of an array or a map alone."""
    return packed[_HEAD_LENGTHS.get(packed[0], 1) :]


class StoredText(NamedTuple):
    """A field of a document with JSON."""

    document: Struct
    field: str
    text: Raw

    def become(self, packed: bytes) -> None:
        """Put MessagePack in its place."""
        setattr(self.document, self.field, Raw(packed))


def stored_texts(document: object) -> Iterator[StoredText]:
    """The fields with JSON of a document, or of documents in a list or a dict."""
    if isinstance(document, Struct):
        fields = zip(document.__struct_fields__, msgspec.structs.astuple(document), strict=True)
        for name, value in fields:
            if isinstance(value, Raw):
                yield StoredText(document, name, value)
            elif isinstance(value, Struct | list):
                yield from stored_texts(value)
    elif isinstance(document, list | dict):
        inner: Iterable[object] = document.values() if isinstance(document, dict) else document
        for each in inner:
            if isinstance(each, Struct | list | dict):
                yield from stored_texts(each)


def repacked(text: bytes | str | Raw) -> bytes:
    """JSON as MessagePack. Raises `msgspec.DecodeError` for what is no JSON."""
    return pack(msgspec.json.decode(text))


def repacking(text: str) -> Generator[int, None, bytes]:
    """Return JSON as MessagePack, piece by piece. Yields how much it looked at.

    An array or object that is longer than a piece has the long form of its head, and keeps names
    that it has twice. Raises `msgspec.DecodeError` for what is no JSON.
    """
    if len(text) <= PIECE or text[0] not in _HEADS:
        yield len(text)
        return repacked(text)
    packed = bytearray()
    outer = [_Container(text[0], packed)]
    at = 1
    while outer:
        piece = _next_piece(text, at)
        inside = outer[-1]
        if piece.is_deep:
            head = _DEEP.match(text, at)
            if head is None:
                return repacked(text)
            inside.length += 1
            packed += b"" if head[1] is None else repacked(head[1])
            outer.append(_Container(head[2], packed))
            at = head.end()
            yield PIECE
            continue
        inside.add(text[at : piece.end], packed)
        yield piece.end - at
        at = piece.end + 1
        if piece.is_last:
            outer.pop().close(packed)
            at = _NEXT.match(text, at).end()  # type: ignore[union-attr]
    return bytes(packed)


pack = msgspec.msgpack.Encoder().encode
"""Encodes a document in which MessagePack has taken the place of JSON."""

_HEADS = {"[": b"\xdd", "{": b"\xdf"}
"""The long heads of arrays and maps, before the number of their members."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(
    rf"(?P<members>(?:(?:[^\[\]{{}},\"]++|{_STRING})*+,){{1,32}}+)|[\[{{]|(?P<closing>[\]}}])"
    rf"|{_STRING}|[^\[\]{{}},\"]++"
)
"""Scalar members up to a comma, a bracket, or a part of a member."""

_DEEP = re.compile(rf"\s*+(?:({_STRING})\s*+:\s*+)?([\[{{])")
"""The beginning of a member that is an array or an object."""

_NEXT = re.compile(r"\s*+,?")


class _Container:
    """An array or object that is packed in pieces. Its head gets the number of members last."""

    def __init__(self, opening: str, packed: bytearray) -> None:
        self.length = 0
        self._opening = opening
        self._place = len(packed)
        packed += _HEADS[opening] + bytes(4)

    def add(self, members: str, packed: bytearray) -> None:
        """Pack members, which have commas between them alone."""
        is_array = self._opening == "["
        values = msgspec.json.decode(f"[{members}]" if is_array else f"{{{members}}}")
        self.length += len(values)
        part = pack(values)
        packed += without_head(part)

    def close(self, packed: bytearray) -> None:
        """Write the number of members into the head."""
        struct.pack_into(">I", packed, self._place + 1, self.length)


_HEAD_LENGTHS = {0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
"""The lengths of heads with more than 15 members."""


class _Piece(NamedTuple):
    """Whole members up to `end`: the `is_last` ones, or those before a comma.

    If `is_deep`, there are none, for the first member is an array or object that is too long.
    """

    end: int
    is_last: bool = False
    is_deep: bool = False


def _next_piece(text: str, start: int) -> _Piece:
    """The members of an array or object from here on, until they make a piece."""
    at, depth, whole = start, 0, -1
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        if token["closing"]:
            depth -= 1
            if depth < 0:
                return _Piece(at - 1, is_last=True)
        elif token["members"] is None:
            depth += text[at - 1] in _HEADS
        elif not depth:
            whole = at - 1
        if at - start >= PIECE:
            if whole >= 0:
                return _Piece(whole)
            if depth:
                return _Piece(start, is_deep=True)
    return _Piece(len(text), is_last=True)
