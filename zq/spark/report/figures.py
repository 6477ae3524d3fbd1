"""The figures of the report, added up by Spark from the lake.

What comes back is small: a row a bucket and queue at most, of the queues that are shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import Row
from pyspark.sql import functions as F

from zq.spark.columns import DAY_MS, HOUR_MS
from zq.spark.errors import NoHistory
from zq.spark.lake import Lake
from zq.spark.report.shown import Shown
from zq.spark.report.span import Span, moment
from zq.spark.tables import ATTEMPTS, FACTS

OUTLIERS = 0.001
"""This share of the attempts may lie after the last day that is shown: a device whose clock is
years ahead must not decide which days are."""


@dataclass(frozen=True)
class Asked:
    """What is to be shown: from `since` on and before `until` (Unix ms). Where one is not given, it
    is where the history begins or ends, and it begins no more than `days` days before its end."""

    days: int = 14
    since: int | None = None
    until: int | None = None


DEFAULT = Asked()


@dataclass(frozen=True)
class Figures:
    """What the page shows. Rows have the columns of gold, `begin` is in Unix milliseconds.

    `total` and `queues` are over the whole span, so their rates are means over it; queues have
    `peak_backlog` and `peak_workers` of their worst moment and time. `buckets` and `hours` (of
    several days only) are of all queues together. `outside` counts attempts of other times.
    """

    span: Span
    target_ms: int
    outside: int
    total: Row
    buckets: list[Row]
    hours: list[Row]
    queues: list[Row]
    queue_buckets: list[Row]
    types: list[Row]
    devices: list[Row]
    errors: list[Row]


def gather(lake: Lake, asked: Asked = DEFAULT) -> Figures:
    """The figures of the span of the lake's history that is asked for. Raises `NoHistory`."""
    target = lake.state.target_ms
    per_day = lake.read(FACTS).groupBy("date").agg(F.sum("attempts").alias("n"))
    counts = {row["date"]: row["n"] for row in per_day.collect() if row["n"]}
    if target is None or not counts:
        raise NoHistory(f"{lake.path} has no history: bring some in by zq pipeline run")
    span = _span(lake, asked, counts)
    with Shown(lake, span, target) as shown:
        total = shown.total()
        buckets = shown.by_time(span.size)
        queues = shown.queues()
        queue_buckets = shown.queues_by_time([row["queue"] for row in queues])
        return Figures(
            span=span,
            target_ms=target,
            outside=sum(counts.values()) - total["attempts"],
            total=total,
            buckets=buckets,
            hours=shown.by_time(HOUR_MS) if len(span.days) > 1 else [],
            queues=[_with_peaks(row, queue_buckets) for row in queues],
            queue_buckets=queue_buckets,
            types=shown.types(),
            devices=shown.devices(),
            errors=shown.errors(),
        )


def _span(lake: Lake, asked: Asked, counts: Mapping[date, int]) -> Span:
    """What is asked for, as far as there is history."""
    until = _midnight(_last_day(counts)) + DAY_MS if asked.until is None else asked.until
    since = until - asked.days * DAY_MS if asked.since is None else asked.since
    finished = F.unix_millis("finished_at")
    days = [moment(max(0, each)).date() for each in (since, until)]
    inside = lake.read(ATTEMPTS).where(
        F.col("date").between(*days) & (finished >= since) & (finished < until)
    )
    began = F.when(~F.col("skewed"), F.least(F.unix_millis("ready_at"), finished))
    ends = F.min(F.coalesce(began, finished)), F.max(finished), F.count("*")
    first, last, attempts = inside.agg(*ends).collect()[0]
    if first is None:
        raise NoHistory(
            f"{lake.path} has no history from {moment(since):%Y-%m-%d %H:%M} to"
            f" {moment(until):%Y-%m-%d %H:%M} UTC: it has some from {min(counts)} to {max(counts)}"
        )
    return Span.fitted(max(first, since), min(last + 1, until), attempts)


def _last_day(counts: Mapping[date, int]) -> date:
    """The last day but for `OUTLIERS` of the attempts."""
    later = 0
    for day in sorted(counts, reverse=True):
        later += counts[day]
        if later > OUTLIERS * sum(counts.values()):
            return day
    return max(counts)


def _midnight(day: date) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


def _with_peaks(queue: Row, buckets: list[Row]) -> Row:
    mine = [row for row in buckets if row["queue"] == queue["queue"]]
    return Row(
        **queue.asDict(),
        peak_backlog=max((row["peak_backlog"] or 0 for row in mine), default=0),
        peak_workers=max((row["workers_needed"] or 0 for row in mine), default=0),
    )
