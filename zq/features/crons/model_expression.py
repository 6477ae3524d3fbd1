"""Cron expressions and their time zones: their syntax, and the next time of one.

cronsim parses expressions and computes times. Clients know the dialect of croner, which writes some
things differently and has a few more: `?`, macros, ``FRI#L``, ``MON-FRI#2``, ``15W``, ``+MON``.
Here they are translated for cronsim, or added to its walk. (croniter has less of it: no ``LW``, no
``5L``. It requires both of ``29`` and ``MON#5`` instead of either, and reads ``R`` as chance.)
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from zq.model.errors import InvalidRequest

if TYPE_CHECKING:
    from zq.features.crons.model_walk import CronWalk

MAX_EXPRESSION = 256
"""The longest expression, in characters."""

MACROS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

MOST_STEPS = 3 * 3600 + 1
"""The most steps to the first time after now. If the clock is set back, a repeated hour is walked
through, by the second at worst."""

SECONDS, MINUTES, HOURS, DAY, MONTH, WEEKDAY = range(6)

_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NEAREST = re.compile(r"([0-9]{1,2})W")
_NTH = re.compile(r"([A-Z0-9]+)(?:-([A-Z0-9]+))?#([1-5L])")
_LAST = re.compile(r"([A-Z0-9]+)L")
_RESERVED = re.compile(r"[^A-Z0-9*,/#-]")
_ANY_DAY = datetime(2024, 1, 1)


class CronExpression:
    """A valid expression. `is_timed` says that it names times of day, not an interval."""

    def __init__(self, text: str) -> None:
        """Raises `InvalidRequest` with the fault of the text."""
        self.text = text
        try:
            fields = _fields(text)
            self._both = fields[WEEKDAY].startswith("+")
            fields[WEEKDAY] = _weekdays(fields[WEEKDAY].removeprefix("+"))
            days, nearest = _days(fields[DAY])
            self._nearest = frozenset(nearest)
            self._only_nearest = not days
            fields[DAY] = ",".join(days) or "1"
            self.is_timed = not any(field.startswith("*") for field in fields[:DAY])
            self._parts = " ".join(fields)
            if found := _RESERVED.search(self._parts.replace(" ", "")):
                raise ValueError(f"{found[0]!r} means nothing here")
            self._walk(_ANY_DAY)
        except ValueError as error:
            raise _refusal(text, str(error).lower()) from None

    def after(self, now: int, zone: tzinfo) -> int | None:
        """The first time after `now`, in milliseconds; None if there is none in 50 years.

        If clocks are set forward, a time of day that is skipped comes at the end of the gap. If
        they are set back, named times come once, at the first of the two. Intervals go on.
        """
        try:
            start = datetime.fromtimestamp(now // 1000, zone)
            for found in islice(self._walk(start), MOST_STEPS):
                time = int(found.timestamp()) * 1000
                # Named times are walked by the wall clock, which shows some of them twice.
                if time > now:
                    return time
        except (ValueError, OverflowError):
            pass  # beyond the year 9999
        return None

    def first(self, now: int, zone: tzinfo) -> int:
        """The first time of a client's expression. Raises `InvalidRequest` if there is none."""
        found = self.after(now, zone)
        if found is None:
            raise _refusal(self.text, "it never comes")
        return found

    def _walk(self, start: datetime) -> "CronWalk":
        from zq.features.crons.model_walk import CronWalk  # with cronsim, which few servers need

        walk = CronWalk(self._parts, start)
        walk.nearest = self._nearest
        if self._only_nearest:
            walk.days = set()
        walk.day_and |= self._both
        if self.is_timed and start.tzinfo is not None:
            # cronsim itself does this only if there are no seconds.
            walk.fixup_tz = start.tzinfo
            walk.dt = walk.dt.replace(tzinfo=None)
        return walk


@lru_cache(maxsize=4096)
def parsed(text: str) -> CronExpression:
    """An expression that was stored, and so is valid."""
    return CronExpression(text)


def _fields(text: str) -> list[str]:
    """The six fields, in capitals, seconds first."""
    if len(text) > MAX_EXPRESSION:
        raise ValueError(f"it has more than {MAX_EXPRESSION} characters")
    if not text.isascii():
        raise ValueError("it holds more than plain ASCII")
    words = text.upper()
    if words.strip().startswith("@"):
        if words.strip() not in MACROS:
            known = ", ".join(MACROS).lower()
            raise ValueError(f"the macros are {known}")
        words = MACROS[words.strip()]
    fields = words.split()
    if len(fields) == 5:
        fields.insert(0, "0")
    if len(fields) != 6:
        raise ValueError(
            f"it has {len(fields)} fields; write minute, hour, day of month, month, day of week,"
            " and seconds before them if you like"
        )
    for place in (DAY, WEEKDAY):
        fields[place] = "*" if fields[place] == "?" else fields[place]
    return fields


def _days(field: str) -> tuple[list[str], list[int]]:
    """The days of the month for cronsim, and the days whose nearest weekday is meant."""
    days, nearest = [], []
    for item in field.split(","):
        if match := _NEAREST.fullmatch(item):
            if not 1 <= int(match[1]) <= 31:
                raise ValueError("bad day-of-month")
            nearest.append(int(match[1]))
        else:
            # A star with a step names days: then either these or the weekdays have to match.
            days.append(f"1-31{item[1:]}" if item.startswith("*/") else item)
    return days, nearest


def _weekdays(field: str) -> str:
    """The days of the week for cronsim."""
    return ",".join(term for item in field.split(",") for term in _terms(item))


def _terms(item: str) -> Iterator[str]:
    if item.startswith("*/"):
        yield f"0-6{item[1:]}"
    elif match := _NTH.fullmatch(item):
        first = _weekday(match[1])
        last = first if match[2] is None else _weekday(match[2], first)
        if last < first:
            raise ValueError("bad day-of-week")
        yield from (
            f"{day}L" if match[3] == "L" else f"{day}#{match[3]}" for day in range(first, last + 1)
        )
    elif match := _LAST.fullmatch(item):
        yield f"{_weekday(match[1])}L"
    elif item.endswith("-SUN"):
        yield f"{item.removesuffix('-SUN')}-7"
    else:
        yield item


def _weekday(name: str, after: int = 0) -> int:
    """The number of a weekday. Sunday at the end of a range is 7."""
    if name in _DAYS:
        day = _DAYS.index(name)
        return 7 if after and not day else day
    if name not in "01234567" or len(name) != 1:
        raise ValueError("bad day-of-week")
    return int(name)


def _refusal(text: str, reason: str) -> InvalidRequest:
    shown = text if len(text) <= MAX_EXPRESSION else f"{text[:MAX_EXPRESSION]}…"
    return InvalidRequest(f"invalid cron expression: {shown!r}: {reason}")


MAX_ZONE = 255


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo:
    """The zone of the IANA database with this name. Raises `InvalidRequest`."""
    from zoneinfo import ZoneInfo

    if 0 < len(name) <= MAX_ZONE:
        try:
            return ZoneInfo(name)
        except (LookupError, ValueError, OSError):
            pass
    raise InvalidRequest(f'invalid timezone: "{name[:MAX_ZONE]}"')


class FaultyEntry(NamedTuple):
    """An entry that is set aside, and why."""

    group: str
    entry: str
    reason: str


class FaultyEntries(NamedTuple):
    """How many entries are set aside, and some of them by name."""

    entries: int
    named: Sequence[FaultyEntry]


NONE_FAULTY = FaultyEntries(0, ())


def fault_of(expression: str, zone: str | None) -> str | None:
    """Why a stored schedule cannot be evaluated; None if it can."""
    try:
        parsed(expression)
        if zone is not None:
            zone_named(zone)
    except InvalidRequest as error:
        return error.message
    return None
