"""The time that a report shows, and the buckets that its charts have a point for."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from zq.spark.columns import DAY_MS, HOUR_MS, MINUTE_MS

SIZES = {
    MINUTE_MS: "minute",
    5 * MINUTE_MS: "five minutes",
    15 * MINUTE_MS: "quarter of an hour",
    HOUR_MS: "hour",
    6 * HOUR_MS: "six hours",
    DAY_MS: "day",
}
"""How long a bucket may be, and how that is said."""

MOST_BUCKETS = 400
"""A chart is about a thousand points wide. Two weeks have 336 hours."""

FEW_BUCKETS = 30
ENOUGH = 20
"""So many attempts a bucket have percentiles to tell, on average; fewer do in few buckets."""


@dataclass(frozen=True)
class Span:
    """From `since` on and before `until` (Unix ms), in buckets of `size` ms; none is cut."""

    since: int
    until: int
    size: int

    @classmethod
    def fitted(cls, since: int, until: int, attempts: int) -> "Span":
        """The shortest buckets of which a chart has room and that so many attempts fill, over at
        least the time that is asked for."""
        most = min(MOST_BUCKETS, max(FEW_BUCKETS, attempts // ENOUGH))
        size = next((size for size in SIZES if until - since <= most * size), DAY_MS)
        return cls(since // size * size, -(-until // size) * size, size)

    @property
    def bucket(self) -> str:
        """How a bucket is called."""
        return SIZES[self.size]

    @property
    def grain(self) -> int:
        """The times for which figures are added up first: hours, or less where charts show less."""
        return min(self.size, HOUR_MS)

    @property
    def hours(self) -> float:
        return (self.until - self.since) / HOUR_MS

    @property
    def begin(self) -> datetime:
        return moment(self.since)

    @property
    def end(self) -> datetime:
        return moment(self.until)

    @property
    def days(self) -> list[date]:
        """Those that it touches."""
        first, last = self.begin.date(), moment(self.until - 1).date()
        return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def moment(millis: int) -> datetime:
    """A time in UTC."""
    return datetime.fromtimestamp(millis / 1000, UTC)
