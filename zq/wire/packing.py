"""What clients have stored, from the JSON that it is kept as into MessagePack.

Documents have it as `msgspec.Raw`. Large JSON is packed piece by piece, so that whoever sends a
document can serve others between two pieces.
"""

import struct
from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from zq.model.payload import PieceKind, json_pieces


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
    """Return JSON as MessagePack, piece by piece. Yields the length of each piece.

    An array or object that is longer than a piece has the long form of its head, and keeps names
    that it has twice. Raises `msgspec.DecodeError` for what is no JSON.
    """
    packed = bytearray()
    outer: list[_Container] = []
    for piece in json_pieces(text):
        match piece.kind:
            case PieceKind.WHOLE:
                packed += repacked(text)
            case PieceKind.OPENED:
                if outer:
                    outer[-1].length += 1
                packed += b"" if piece.name is None else repacked(piece.name)
                outer.append(_Container(piece.text, packed))
            case PieceKind.MEMBERS:
                outer[-1].add(msgspec.json.decode(piece.text), packed)
            case PieceKind.CLOSED:
                outer.pop().close(packed)
        yield len(piece.text)
    return bytes(packed)


pack = msgspec.msgpack.Encoder().encode
"""Encodes a document in which MessagePack has taken the place of JSON."""

_HEADS = {"[": b"\xdd", "{": b"\xdf"}
"""The long heads of arrays and maps, before the number of their members."""


class _Container:
    """An array or object that is packed in pieces. Its head gets the number of members last."""

    def __init__(self, opening: str, packed: bytearray) -> None:
        self.length = 0
        self._place = len(packed)
        packed += _HEADS[opening] + bytes(4)

    def add(self, members: list[Any] | dict[str, Any], packed: bytearray) -> None:
        self.length += len(members)
        packed += without_head(pack(members))

    def close(self, packed: bytearray) -> None:
        struct.pack_into(">I", packed, self._place + 1, self.length)


_HEAD_LENGTHS = {0xDC: 3, 0xDD: 5, 0xDE: 3, 0xDF: 5}
"""The lengths of heads with more than 15 members."""
