"""How far back charts look, and in which order types come."""

from enum import StrEnum


class TrendRange(StrEnum):
    """How far back to look."""

    MINUTES = "5m"
    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    QUARTER = "90d"


class TypeRange(StrEnum):
    """How far back to look."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"


class TypeSort(StrEnum):
    """Which types come first."""

    SLOWEST = "slowest"
    FAILING = "failing"
    RATE = "rate"
