"""The limits of a payload beyond valid JSON: its depth, and the size of its integers."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

MAX_DEPTH = 128
MIN_INTEGER, MAX_INTEGER = -(2**63), 2**64 - 1

_MAY_BE_LONG = re.compile(r"\d{19}")
"""Only a text with this many digits in a row can hold an integer out of range."""


def nests_too_deeply(payload: str) -> bool:
    """Whether a valid JSON text nests deeper than `MAX_DEPTH`."""
    if payload.count("[") + payload.count("{") <= MAX_DEPTH:
        return False
    level: list[Any] = [msgspec.json.decode(payload)]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for item in level for inner in _children(item)]
        if not level:
            return False
    return True


def has_long_integer(payload: str) -> bool:
    """Whether a valid JSON text has an integer out of the range of payloads."""
    if _MAY_BE_LONG.search(payload) is None:
        return False
    level: list[Any] = [msgspec.json.decode(payload)]
    while level:
        if any(type(item) is int and not MIN_INTEGER <= item <= MAX_INTEGER for item in level):
            return True
        level = [inner for item in level for inner in _children(item)]
    return False


def _children(item: object) -> Iterable[object]:
    # An empty container is as deep as one with contents.
    if isinstance(item, dict):
        return item.values() or (None,)
    if isinstance(item, list):
        return item or (None,)
    return ()
