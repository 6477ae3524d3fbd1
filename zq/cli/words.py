"""What the words of a command may be: durations, names, ids."""

from typing import Any

import click

from zq.kinds import DURATION


class Milliseconds(click.ParamType[int]):
    """`500ms`, `3s`, `10m`, `1h`: a number with its unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """In milliseconds."""
        if isinstance(value, int):
            return value
        try:
            return int(DURATION.parse(value))
        except ValueError:
            self.fail(f'"{value}" is no {DURATION.noun}: {DURATION.remedy}', param, ctx)


class Seconds(click.ParamType[float]):
    """The same in seconds, as the library has it."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """In seconds."""
        if isinstance(value, float):
            return value
        return MILLISECONDS.convert(value, param, ctx) / 1000


class Name(click.ParamType[str]):
    """An id or a name. An empty one is a variable of a script that was never set."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("it is empty", param, ctx)
        return str(value)


class Names(click.ParamType[tuple[str, ...]]):
    """Names with commas between them, at least one."""

    name = "names"

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self._known = known

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        if not names:
            self.fail("it names none: leave the option out to mean all", param, ctx)
        for name in names:
            if self._known and name not in self._known:
                self.fail(f"{name!r} is none of {', '.join(self._known)}", param, ctx)
        return names


MILLISECONDS = Milliseconds()
SECONDS = Seconds()
NAME = Name()
NAMES = Names()
