"""Where the values of a table's rows lie in the file of a database, so that a test can harm one.

It follows the format of leaves of tables in https://www.sqlite.org/fileformat.html, sections 1.6
and 2.1. Rows that reach over more than one page are left out.
"""

from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
_TABLE_LEAF = 13
_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a value by its serial type, for the types below 10."""


def cells(file: Path, columns: int) -> Iterator[tuple[int, list[range]]]:
    """The rows of tables with so many columns: the key, and the bytes of each value in the file.

    These are the bytes of its type and its content. A value such as NULL, 0 or 1 has no content.
    """
    content = file.read_bytes()
    for page in range(0, len(content), PAGE):
        start = page + (100 if page == 0 else 0)
        if content[start] != _TABLE_LEAF:
            continue
        for number in range(int.from_bytes(content[start + 3 : start + 5])):
            pointer = start + 8 + 2 * number
            place = page + int.from_bytes(content[pointer : pointer + 2])
            size, place = _varint(content, place)
            key, place = _varint(content, place)
            if place + size > page + PAGE:
                continue
            found = list(_values(content, place))
            if len(found) == columns:
                yield key, found


def _values(content: bytes, place: int) -> Iterator[range]:
    head, at = _varint(content, place)
    body, end = place + head, place + head
    while at < end:
        kind, after = _varint(content, at)
        size = _SIZES[kind] if kind < len(_SIZES) else (kind - 12) // 2
        yield range(body, body + size) if size else range(at, after)
        body, at = body + size, after


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number of variable length, and the place behind it."""
    value = 0
    for index in range(9):
        byte = content[place + index]
        if index == 8:
            return value << 8 | byte, place + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + index + 1
    raise AssertionError("a varint has at most nine bytes")
