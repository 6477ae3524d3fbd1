"""Schedules of the server's own chores: five fields, a macro, or an interval."""

import re
from datetime import tzinfo

from zq.features.crons.model import InvalidSchedule
from zq.features.crons.model_expression import CronExpression, zone_named
from zq.model.errors import InvalidRequest, Unprocessable
from zq.model.job import MAX_TIME

SHOWN = 256
"""How many characters of a faulty schedule are shown."""

_ZONE = re.compile(r"(?:CRON_TZ|TZ)=(\S+)\s+(.+)", re.S)
_EVERY = re.compile(r"@every\s+(\S+)")
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|us|µs|ns|h|m|s)")
_MS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1_000.0, "ms": 1.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
_LEAST_MS = 1_000


class ChoreSchedule:
    """A valid schedule."""

    def __init__(self, text: str) -> None:
        """Raises `InvalidSchedule` with the fault of the text."""
        self.text = text
        self._zone: tzinfo | None = None
        self._every_ms: int | None = None
        try:
            rest = text.strip()
            if zoned := _ZONE.fullmatch(rest):
                self._zone, rest = zone_named(zoned[1]), zoned[2]
            if every := _EVERY.fullmatch(rest):
                self._every_ms = _interval(every[1])
            else:
                self._times = _times(rest)
        except (InvalidRequest, ValueError) as error:
            raise InvalidSchedule(text[:SHOWN], str(error)) from None

    def after(self, now: int, zone: tzinfo) -> int | None:
        """The first time after `now`, in milliseconds; None if there is none in 50 years."""
        if self._every_ms is not None:
            return min(now + self._every_ms, MAX_TIME)
        return self._times.after(now, self._zone or zone)


def _times(text: str) -> CronExpression:
    if not text.startswith("@") and len(text.split()) != 5:
        raise ValueError("write minute, hour, day of month, month, day of week, or @every 1h")
    return CronExpression(text)


def _interval(text: str) -> int:
    """`1h30m` in milliseconds, in whole seconds."""
    amounts = _AMOUNT.findall(text)
    if not amounts or "".join(number + unit for number, unit in amounts) != text or len(text) > 64:
        raise ValueError(f"{text!r} is no duration such as 90s or 1h30m")
    total = min(sum(float(number) * _MS[unit] for number, unit in amounts), float(MAX_TIME // 2))
    return max(int(total) // 1_000 * 1_000, _LEAST_MS)


class NotArchived(Unprocessable):
    """The queue keeps no completed jobs, so there is nothing to replay."""

    code = "not_archived"

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"{queue!r} is not replayable: have its settings keep completed jobs first"
        )


class OutOfArchive(Unprocessable):
    """The queue keeps completed jobs for a shorter time."""

    code = "out_of_archive"

    def __init__(self, queue: str, kept_ms: int) -> None:
        super().__init__(
            f"{queue!r} keeps completed jobs for {kept_ms // 1000} s: begin at a later time"
        )
