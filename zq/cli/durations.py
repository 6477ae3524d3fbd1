"""Durations among the words of a command."""

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


MILLISECONDS = Milliseconds()
SECONDS = Seconds()
