"""Days and hours of Unix milliseconds, in UTC whatever time zone the session has."""

from pyspark.sql import Column
from pyspark.sql import functions as F

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def day_of(millis: Column) -> Column:
    """The DATE of a time."""
    return F.date_from_unix_date(F.floor(millis / DAY_MS).cast("int"))


def hour_of(millis: Column) -> Column:
    """When the hour of a time began, in milliseconds."""
    return floor_to(millis, HOUR_MS)


def floor_to(millis: Column, size: int) -> Column:
    """When the hour, minute or whatever takes `size` milliseconds began."""
    return millis - F.pmod(millis, F.lit(size))
