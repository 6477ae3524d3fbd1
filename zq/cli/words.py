"""Types of arguments: durations, moments, names, ids."""

import re
import time
from datetime import UTC, datetime
from typing import Any

import click

from zq.model.filters import ValueRange
from zq.model.names import names_in
from zq.setting import DURATION


def json_of(text: str | bytes) -> Any:
    """The value of a text in JSON. Raises ValueError if it is none, or one that is too deep."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


class Milliseconds(click.ParamType[int]):
    """A duration: `500ms`, `3s`, `10m` or `1h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return int(DURATION.parse(value))
        except ValueError:
            self.fail(f'"{value}" is not a {DURATION.noun}: {DURATION.remedy}', param, ctx)


class Seconds(click.ParamType[float]):
    """A duration in seconds, which the library uses."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        return MILLISECONDS.convert(value, param, ctx) / 1000


class Moment(click.ParamType[int]):
    """A moment in milliseconds since 1970: how long ago, or a date with or without a time."""

    name = "when"

    def __init__(self, *, past: bool = True) -> None:
        """Without `past`, only a date is a moment."""
        self._past = past

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            if self._past and re.fullmatch(r"\d+(ms|s|m|h|d)", text):
                return time.time_ns() // 1_000_000 - int(DURATION.parse(text))
            moment = datetime.fromisoformat(text)
        except ValueError:
            ages = "7d, " if self._past else ""
            self.fail(
                f"{text!r} is not a time: write {ages}2026-01-31 or 2026-01-31T18:00", param, ctx
            )
        # A time without a zone is UTC, like all times in the history.
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)


class Name(click.ParamType[str]):
    """An id or a name. An empty text is refused: a script's variable was never set."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("the name is empty", param, ctx)
        return str(value)


class Names(click.ParamType[tuple[str, ...]]):
    """One or more names with commas between them."""

    name = "names"

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self._known = known

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = names_in(value)
        if not names:
            self.fail("the list is empty: leave the option out to name all", param, ctx)
        for name in names:
            if self._known and name not in self._known:
                self.fail(f"{name!r} is not one of {', '.join(self._known)}", param, ctx)
        return names


class Range(click.ParamType[ValueRange]):
    """A number, or a range that includes its ends: `5`, `1..9`, `1..` or `..9`."""

    name = "range"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ValueRange:
        if isinstance(value, ValueRange):
            return value
        match = re.fullmatch(r"(\d{1,10})|(\d{1,10})?\.\.(\d{1,10})?", value, re.ASCII)
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is not a range: write 5, 1..9, 1.. or ..9", param, ctx)
        bounds = (match[1] or match[2], match[1] or match[3])
        low, high = (None if text is None else int(text) for text in bounds)
        if low is not None and high is not None and low > high:
            self.fail(f"{low} is more than {high}", param, ctx)
        return ValueRange(low, high)


MILLISECONDS = Milliseconds()
SECONDS = Seconds()
NAME = Name()
NAMES = Names()
RANGE = Range()
