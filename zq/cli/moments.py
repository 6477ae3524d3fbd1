"""Moments as options: so long ago, or a date."""

import re
import time
from datetime import UTC, datetime

import click

from zq.kinds import DURATION


class Moment(click.ParamType[int]):
    """A moment in milliseconds since 1970: so long ago, or a date with or without a time."""

    name = "when"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        try:
            if re.fullmatch(r"\d+(ms|s|m|h|d)", text):
                return time.time_ns() // 1_000_000 - int(DURATION.parse(text))
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is no time: write 7d, 2026-01-31 or 2026-01-31T18:00", param, ctx)
        # A time that names no zone is UTC, as everything in the history is.
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
