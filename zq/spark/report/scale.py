"""The scales of the report: its span of time, the buckets of its charts, and units of figures."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from zq.spark.pipeline.tables import DAY_MS, HOUR_MS, MINUTE_MS

SIZES = {
    MINUTE_MS: "minute",
    5 * MINUTE_MS: "five minutes",
    15 * MINUTE_MS: "quarter of an hour",
    HOUR_MS: "hour",
    6 * HOUR_MS: "six hours",
    DAY_MS: "day",
}
"""Length of a bucket in milliseconds → its name."""

NOTHING = "\N{EN DASH}"
UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))

MOST_BUCKETS = 400
"""A chart is about a thousand points wide. Two weeks have 336 hours."""

FEW_BUCKETS = 30
ENOUGH = 20
"""A chart has more than `FEW_BUCKETS` only with so many attempts in each, on average: fewer have no
percentiles worth showing."""


@dataclass(frozen=True)
class ReportSpan:
    """The time from `since` to before `until` (Unix ms), in whole buckets of `size` ms."""

    since: int
    until: int
    size: int

    @classmethod
    def fitted(cls, since: int, until: int, attempts: int) -> "ReportSpan":
        """A span over at least this time. It has the shortest buckets that fit in a chart and that
        so many attempts fill."""
        most = min(MOST_BUCKETS, max(FEW_BUCKETS, attempts // ENOUGH))
        size = next((size for size in SIZES if until - since <= most * size), DAY_MS)
        return cls(since // size * size, -(-until // size) * size, size)

    @property
    def bucket(self) -> str:
        """The name of a bucket's length."""
        return SIZES[self.size]

    @property
    def grain(self) -> int:
        """The length of the sums behind the figures: an hour, or a bucket if that is shorter."""
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
        """The days that the span touches."""
        first, last = self.begin.date(), moment(self.until - 1).date()
        return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def moment(millis: int) -> datetime:
    """A time in UTC."""
    return datetime.fromtimestamp(millis / 1000, UTC)


def duration(millis: float | None) -> str:
    """`830 ms`, `4.2 s`, `12 min`; a dash for None."""
    if millis is None:
        return NOTHING
    for size, unit in UNITS:
        if millis >= size:
            return f"{_short(millis / size)} {unit}"
    return "0 ms" if millis < 0.5 else "1 ms"


def count(number: float) -> str:
    """`0.25`, `950`, `12,400`, `1.3 M`."""
    if number >= 1_000_000:
        return f"{_short(number / 1_000_000)} M"
    if number == round(number) or number >= 10:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def percent(share: float | None) -> str:
    """`0.4 %`; `0.02 %` if the share is that small but not zero; a dash for None."""
    if share is None:
        return NOTHING
    if 0 < share < 0.001:
        return f"{share * 100:.2f} %" if share >= 0.0001 else "< 0.01 %"
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:.0f} %"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 9.95 or number == round(number) else f"{number:.1f}"
