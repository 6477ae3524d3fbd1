"""The limits of a payload beyond valid JSON: its depth, and the size of its integers.

All of it takes a time in proportion to the length of the text, and makes no values of it.
"""

import re
from itertools import accumulate

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
