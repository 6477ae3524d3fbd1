"""Times and whole numbers, checked where they are written.

Times are seconds or timedelta here, and milliseconds in all layers below.
"""

from datetime import timedelta

from zq.client.errors import InvalidOption
from zq.model.job import MAX_TIME

Seconds = float | timedelta


def milliseconds(name: str, value: Seconds, high: int = MAX_TIME, *, low: int = 0) -> int:
    """Seconds or a timedelta as whole milliseconds. Raises `InvalidOption`."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidOption(f"{name}: {value!r} is not a time: give seconds or a timedelta")
    if not low <= seconds * 1000 <= high:
        bound = "a positive number" if low else "a number"
        raise InvalidOption(f"{name} must be {bound} of seconds, not {value!r}")
    return round(seconds * 1000)


def positive_ms(name: str, value: Seconds, high: int = MAX_TIME) -> int:
    """A time of at least 1 ms, in milliseconds. Raises `InvalidOption`."""
    return milliseconds(name, value, high, low=1)


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number within its bounds. Raises `InvalidOption`."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidOption(f"{name}: {value!r} is not a whole number from {low} to {high}")
    return value
