"""cronsim's walk from one time of an expression to the next, with what it lacks."""

from calendar import monthrange
from datetime import date, datetime

from cronsim import CronSim, CronSimError


class CronWalk(CronSim):
    """cronsim's walk, extended by the weekday nearest to a day. Raises ValueError for a fault."""

    nearest: frozenset[int] = frozenset()

    def __init__(self, parts: str, start: datetime) -> None:
        try:
            super().__init__(parts, start)
        except CronSimError as error:
            raise ValueError(str(error)) from None

    def match_dom(self, d: date) -> bool:
        return super().match_dom(d) or any(
            _nearest_weekday(d, day) == d.day for day in self.nearest
        )


def _nearest_weekday(month: date, day: int) -> int | None:
    """The weekday from Monday to Friday nearest to `day` in this month; None without that day."""
    _, last = monthrange(month.year, month.month)
    if day > last:
        return None
    weekday = month.replace(day=day).weekday()
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < last else day - 2
    return day
