"""Days and hours of Unix milliseconds, in UTC whatever time zone the session has."""

from pyspark.sql import Column
from pyspark.sql import functions as F

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def day_of(millis: Column) -> Column:
    """The DATE of a time."""
    return F.date_from_unix_date(F.floor(millis / DAY_MS).cast("int"))


def hour_of(millis: Column) -> Column:
    """When the hour of a time began, in milliseconds."""
    return millis - F.pmod(millis, F.lit(HOUR_MS))
