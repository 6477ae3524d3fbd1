"""A setting: its kinds of values, and how these are written, read, checked and shown.

Durations are stored in milliseconds, sizes in bytes. A duration has its unit: a bare number would
mean seconds to users of the library and milliseconds to users of the HTTP API.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

_DURATIONS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_SIZES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}

_YES = ("yes", "true", "on", "1")
_NO = ("no", "false", "off", "0")
_HOST = re.compile(r"[^\s,/:\[\]]+|[0-9a-fA-F:.]+")
_WORD = re.compile(r"[\w.-]{1,20}")
_ORIGIN = re.compile(r"https?://[^\s,/?#]+")
_ONE_CHARACTER = re.compile(r"\\[^0-9]|\[\^?\]?(?:\\.|[^\]\\])*+\]", re.DOTALL)
"""Parts of a regular expression in which signs have no meaning of their own."""

_REPEATS = re.compile(r"[*+{\\]|\(\?(?!:)")
"""Signs of what repeats, or looks back or ahead."""

MOST_CHOICES = 8
"""How many groups a pattern may have, and how many optional parts."""

_PUBLIC_URL = re.compile(r"(https?://[^\s,/?#@]+)((?:/[\w.~%!$&'()*+;=:@-]+)*)/?")


def _quantity(text: str, units: Mapping[str, int]) -> int:
    """`64MiB` → 67108864. Raises ValueError if the number has none of the `units`."""
    match = re.fullmatch(r"([0-9]{1,16})\s*([A-Za-z]*)", text.strip())
    factors = {unit.lower(): factor for unit, factor in units.items()}
    if match is None or match[2].lower() not in factors:
        raise ValueError(text)
    return int(match[1]) * factors[match[2].lower()]


def _duration(text: str) -> int:
    """`3s` → 3000. Zero needs no unit."""
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


def _public_url(text: str) -> str:
    """A URL of this server as it is used: with one slash at its end."""
    match = _PUBLIC_URL.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return f"{match[1].lower()}{match[2]}/"


def _pattern(text: str) -> str:
    """A pattern without repetitions: at each place of a text it is tried for a bounded time."""
    signs = _ONE_CHARACTER.sub("x", _non_empty(text))
    optional = signs.replace("(?:", "(").count("?")
    if _REPEATS.search(signs) or max(signs.count("("), optional) > MOST_CHOICES:
        raise ValueError(text)
    try:
        re.compile(text)
    except re.error:
        raise ValueError(text) from None
    return text


def _non_empty(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text


def _word(text: str) -> str:
    if not _WORD.fullmatch(text.strip()):
        raise ValueError(text)
    return text.strip()


@dataclass(frozen=True)
class Kind:
    """How values of one kind are read and written."""

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
    "list",
    "write names or addresses without ports, separated by commas",
    lambda text: _list(text, _HOST),
)
ORIGINS = Kind(
    "list",
    "write origins such as https://tools.example.org, separated by commas",
    lambda text: _list(text.lower(), _ORIGIN),
)
PUBLIC_URL = Kind("URL", "write it as https://ops.example.org/queue/", _public_url)
WORD = Kind("word", "write up to 20 letters, digits, dots and hyphens", _word)
PATTERN = Kind(
    "pattern",
    "write one such as password|api.?key, without `*`, `+` and `{`, since a part of a name is"
    f" enough, and with at most {MOST_CHOICES} groups and {MOST_CHOICES} optional parts",
    _pattern,
)
SCHEDULE = Kind(
    "schedule",
    "write none, or five fields of cron",
    lambda text: "" if text.strip() == "none" else _non_empty(text),
    lambda text: text or "none",
)


def names_of(known: Collection[str]) -> Kind:
    """Some of the known names, or none of them."""
    name = re.compile("|".join(map(re.escape, known)))
    return Kind(
        "list",
        "write names of doors separated by commas, or none",
        lambda text: () if text.strip() == "none" else _list(text, name),
        lambda doors: ",".join(doors) or "none",
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


# Milliseconds and bytes up to this are exact as floats, and far times still fit in SQLite.
_LARGEST = 2**53 - 1


ZIZQ = "ZIZQ_"
"""The prefix of Zizq's variables. A bare number in one is milliseconds, as in Zizq."""


class ConfigError(ValueError):
    """A setting cannot be used. The text names the flag or variable, and the remedy."""


@dataclass(frozen=True)
class Rule:
    """The meaning of a setting and its allowed values."""

    kind: Kind
    help: str
    _: KW_ONLY
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = _LARGEST
    short: str = ""
    unset: str = ""  # the meaning of a default of None


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str
    default: Any
    rule: Rule

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "ZQ_" + self.name.upper()

    @property
    def default_text(self) -> str:
        return self.rule.unset or self.rule.kind.show(self.default)

    def given(
        self, flags: Mapping[str, str | None], environ: Mapping[str, str]
    ) -> tuple[str, str] | None:
        """The flag or variable that sets it, with its text; None means the default."""
        flag = flags.get(self.name)
        if flag is not None:
            return self.flag, flag
        return variable_given(self.variable, environ)

    def read(self, text: str, source: str) -> Any:
        """The value of `text`, which `source` (a flag or a variable) gave. Raises ConfigError."""
        kind = self.rule.kind
        if kind is DURATION and source.startswith(ZIZQ) and text.strip().isdecimal():
            text += "ms"
        try:
            value = kind.parse(text)
        except ValueError:
            raise ConfigError(f'{source}: "{text}" is not a {kind.noun}: {kind.remedy}') from None
        self.check(value, source)
        return value

    def check(self, value: Any, source: str) -> None:
        """Raises ConfigError if `value` is not one of the choices, or is out of range."""
        rule = self.rule
        if value is None and rule.unset:
            return
        if rule.choices and value not in rule.choices:
            *others, last = rule.choices
            raise ConfigError(
                f'{source}: "{value}" is not a choice: write {", ".join(others)} or {last}'
            )
        if isinstance(value, int | float) and not rule.low <= value <= rule.high:
            show = rule.kind.show
            bounds = f"from {show(rule.low)} to {show(rule.high)}"
            if value < rule.low and rule.high == _LARGEST:
                bounds = f"of at least {show(rule.low)}"
            raise ConfigError(
                f"{source}: {show(value)} is out of range: write a {rule.kind.noun} {bounds}"
            )


def variable_given(variable: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The name and text of a `ZQ_…` variable or, if that is unset, of its `ZIZQ_…` twin."""
    for name in (variable, ZIZQ + variable.removeprefix("ZQ_")):
        if environ.get(name):
            return name, environ[name]
    return None


@dataclass(frozen=True, kw_only=True)
class RoomSettings:
    """The settings that a room brings. Each room's class has fields with rules."""

    def check(self, doors: Collection[str]) -> None:
        """Raise ConfigError if they contradict each other, or the doors that are open."""


@cache
def table_of(kind: type) -> tuple[Setting, ...]:
    """The rows of a class whose fields have rules, in the order of its fields."""
    return tuple(_rows_of(kind))


def _rows_of(kind: type) -> Iterator[Setting]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        rules = getattr(hints[field.name], "__metadata__", ())
        if rules:
            yield Setting(name=field.name, default=field.default, rule=rules[0])
