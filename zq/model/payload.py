"""The limits of a payload beyond valid JSON, its depth and the size of its integers; JSON without
line breaks; and long JSON in pieces, between two of which others are served.

The limits take a time in proportion to the length of the text, and make no values of it.
"""

import re
from collections.abc import Generator, Iterator
from enum import Enum
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

MAX_DEPTH = 128
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1

_DIGITS = bytes(ord("0") if chr(byte).isdigit() else ord(" ") for byte in range(128)) + b" " * 128
_MAY_BE_LONG = b"0" * 19
"""Only a text with this many digits in a row can hold an integer out of range."""

MOST_DIGITS = 20
"""An integer with more digits is out of range."""

STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
"""A string of a valid JSON text."""

_LONG_INTEGER = re.compile(rb"(?<![\w.+-])-?(\d{19,}+)(?![\w.])")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""One level down and one level up, as signed bytes."""


def without_strings(text: bytes) -> bytes:
    """A valid JSON text in which each string is empty."""
    return STRING.sub(b'""', text)


def one_line(text: str) -> str:
    """A valid JSON text without line breaks: streams of jobs have one job a line.

    Outside of strings line breaks have no meaning, and within them JSON has none.
    """
    if "\n" in text or "\r" in text:
        return msgspec.json.format(text, indent=-1)
    return text


def nests_too_deeply(payload: str) -> bool:
    """True if a valid JSON text nests deeper than `MAX_DEPTH`."""
    if payload.count("[") + payload.count("{") <= MAX_DEPTH:
        return False
    steps = without_strings(payload.encode()).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b"))) > MAX_DEPTH


def has_long_integer(text: bytes) -> bool:
    """True if a valid JSON text has an integer out of the range of payloads."""
    # Every body comes here. A regular expression would take as long as all else that is done with
    # it, and `in` would first try whether its operand is an integer.
    if text.translate(_DIGITS).find(_MAY_BE_LONG) < 0:
        return False
    return any(
        len(found[1]) > MOST_DIGITS or not MIN_INTEGER <= int(found[0]) <= MAX_INTEGER
        for found in _LONG_INTEGER.finditer(without_strings(text))
    )


PIECE = 16 * 1024
"""The characters of JSON that are decoded at a time: 8,000 values at most."""


class PieceKind(Enum):
    """The kinds of pieces. Arrays and objects that are longer than a piece are opened and closed;
    what is within them comes as members. Text that is no longer than a piece comes as a whole.
    """

    WHOLE = "whole"
    OPENED = "opened"
    MEMBERS = "members"
    CLOSED = "closed"


class JsonPiece(NamedTuple):
    """`text` is a whole value, the bracket that opens or closes, or members with commas between
    them. `name` is the name of a member that is opened, in JSON, where it has one.
    """

    kind: PieceKind
    text: str
    name: str | None = None


def json_pieces(text: str) -> Iterator[JsonPiece]:
    """The pieces of JSON. Raises `msgspec.DecodeError` if its brackets and commas are wrong."""
    begin = _DEEP.match(text)
    if len(text) <= PIECE or begin is None or begin[1] is not None:
        yield JsonPiece(PieceKind.WHOLE, text)
        return
    outer: list[str] = []
    at, after_comma = 0, False
    while outer or not at:
        end = _end_of_piece(text, at) if outer else _TOO_DEEP
        if end == _TOO_DEEP:
            head = _DEEP.match(text, at)
            is_named = outer[-1:] == ["{"]
            if head is None or (head[1] is not None) is not is_named or len(outer) == MAX_DEPTH:
                raise _malformed
            outer.append(head[2])
            yield JsonPiece(PieceKind.OPENED, head[2], head[1])
            at, after_comma = head.end(), False
            continue
        members, sign = text[at:end], text[end : end + 1]
        if members.strip(_BLANKS):
            opening = outer[-1]
            yield JsonPiece(PieceKind.MEMBERS, f"{opening}{members}{_CLOSING[opening]}")
        elif after_comma or sign == ",":
            raise _malformed
        at, after_comma = end + 1, sign == ","
        if sign != ",":
            if sign != _CLOSING[outer.pop()]:
                raise _malformed
            yield JsonPiece(PieceKind.CLOSED, sign)
            if outer:
                following = _FOLLOWING.match(text, at)
                if following is None:
                    raise _malformed
                at, after_comma = following.end(), following[1] is not None
    if text[at:].strip(_BLANKS):
        raise _malformed


def decoding(text: str) -> Generator[int, None, Any]:
    """Return the value of JSON, piece by piece. Yields the length of each piece.

    Raises `msgspec.DecodeError` for what is no JSON, or nests too deeply.
    """
    outer: list[Any] = []
    value: Any = None
    for piece in json_pieces(text):
        match piece.kind:
            case PieceKind.WHOLE:
                value = msgspec.json.decode(text)
            case PieceKind.OPENED:
                value = [] if piece.text == "[" else {}
                if piece.name is not None:
                    outer[-1][msgspec.json.decode(piece.name)] = value
                elif outer:
                    outer[-1].append(value)
                outer.append(value)
            case PieceKind.MEMBERS:
                add = outer[-1].extend if piece.text[0] == "[" else outer[-1].update
                add(msgspec.json.decode(piece.text))
            case PieceKind.CLOSED:
                value = outer.pop()
        yield len(piece.text)
    return value


_BLANKS = " \t\r\n"
_CLOSING = {"[": "]", "{": "}"}
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(
    rf"(?P<members>(?:(?:[^\[\]{{}},\"]++|{_STRING})*+,){{1,32}}+)|[\[{{]|(?P<closing>[\]}}])"
    rf"|{_STRING}|[^\[\]{{}},\"]++"
)
"""Scalar members up to a comma, a bracket, or a part of a member."""

_DEEP = re.compile(rf"[ \t\r\n]*+(?:({_STRING})[ \t\r\n]*+:[ \t\r\n]*+)?([\[{{])")
"""The beginning of a member that is an array or an object, with its name."""

_FOLLOWING = re.compile(r"[ \t\r\n]*+(?:(,)|(?=[\]}]))")
"""The characters behind such a member."""

_TOO_DEEP = -1

_malformed = msgspec.DecodeError("JSON is malformed")


def _end_of_piece(text: str, start: int) -> int:
    """The end of the members that make a piece from here on: at a comma, or at a closing bracket.

    It is `_TOO_DEEP` if the first member is longer than a piece.
    """
    at, depth, comma = start, 0, -1
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        if token["closing"]:
            depth -= 1
            if depth < 0:
                return at - 1
        elif token["members"] is None:
            depth += text[at - 1] in _CLOSING
        elif not depth:
            comma = at - 1
        if at - start >= PIECE:
            if comma >= 0:
                return comma
            if depth:
                return _TOO_DEEP
    raise _malformed
