"""Kinds of settings: how a value of each is written, read and shown.

Durations are held in milliseconds, sizes in bytes. A duration is written with its unit: a bare
number would be seconds to users of the library and milliseconds to users of the HTTP API.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DURATIONS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SIZES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}

_YES = ("yes", "true", "on", "1")
_NO = ("no", "false", "off", "0")
_HOST = re.compile(r"[^\s,/:\[\]]+|[0-9a-fA-F:.]+")
_ORIGIN = re.compile(r"https?://[^\s,/?#]+")


def _quantity(text: str, units: Mapping[str, int]) -> int:
    """`64MiB` → 67108864. ValueError where the number has none of the `units`."""
    match = re.fullmatch(r"([0-9]{1,16})\s*([A-Za-z]*)", text.strip())
    factors = {unit.lower(): factor for unit, factor in units.items()}
    if match is None or match[2].lower() not in factors:
        raise ValueError(text)
    return int(match[1]) * factors[match[2].lower()]


def _duration(text: str) -> int:
    """`3s` → 3000. Nothing takes no time in any unit, so 0 may stand alone."""
    return 0 if re.fullmatch("0+", text.strip()) else _quantity(text, _DURATIONS)


def _in_largest_unit(value: int, units: Mapping[str, int]) -> str:
    if value == 0:
        return "0"
    unit = next(unit for unit, factor in units.items() if value % factor == 0)
    return f"{value // units[unit]}{unit}"


def _whole_number(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text.strip()):
        raise ValueError(text)
    return int(text)


def _yes_or_no(text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES + _NO:
        raise ValueError(text)
    return word in _YES


def _list(text: str, item: re.Pattern[str]) -> tuple[str, ...]:
    items = tuple(part.strip() for part in text.split(","))
    if not all(map(item.fullmatch, items)):
        raise ValueError(text)
    return items


def _non_empty(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text


@dataclass(frozen=True)
class Kind:
    """How values of one sort are read and written."""

    noun: str
    remedy: str
    parse: Callable[[str], Any]  # raises ValueError
    show: Callable[[Any], str] = str


TEXT = Kind("text", "write at least one character", _non_empty)
PATH = Kind(
    "path",
    "write the path of a directory",
    lambda text: Path(_non_empty(text)),
    lambda path: str(path) if path.is_absolute() else f"./{path}",
)
INT = Kind("number", "write a whole number", _whole_number)
SWITCH = Kind(
    "switch",
    "write yes or no",
    _yes_or_no,
    lambda value: "yes" if value else "no",
)
FILE = Kind("file", "write the path of a file", lambda text: Path(_non_empty(text)))
HOSTS = Kind(
    "list", "write names or addresses without ports, with commas", lambda text: _list(text, _HOST)
)
ORIGINS = Kind(
    "list",
    "write origins such as https://tools.example.org, with commas",
    lambda text: _list(text.lower(), _ORIGIN),
)
FLOAT = Kind("number", "write a number such as 4 or 4.0", float)
CHOICE = Kind("choice", "", lambda text: text.strip().lower())
DURATION = Kind(
    "duration",
    "write a number with its unit, such as 500ms, 3s, 10m, 1h or 7d",
    _duration,
    lambda value: _in_largest_unit(value, _DURATIONS),
)
SIZE = Kind(
    "size",
    "write a number of bytes or 512KiB, 64MiB, 256MB, 1GiB",
    lambda text: _quantity(text, {"": 1} | _SIZES),
    lambda value: _in_largest_unit(value, _SIZES),
)
