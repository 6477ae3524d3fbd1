"""The figures of the report, added up by Spark from the lake.

The result is small: at most a row for each bucket and queue that is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import Row
from pyspark.sql import functions as F

from zq.spark.errors import NoHistory
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.tables import ATTEMPTS, DAY_MS, FACTS, HOUR_MS
from zq.spark.report.queries import MOST_QUEUES, ReportQueries
from zq.spark.report.scale import ReportSpan, moment

OUTLIERS = 0.001
"""This share of the attempts may lie after the last day that is shown. So one device whose clock is
years ahead does not choose the days."""


@dataclass(frozen=True)
class ReportRequest:
    """The time to show, from `since` to before `until` (Unix ms). By default these are the
    beginning and the end of the history, and at most `days` days lie between them."""

    days: int = 14
    since: int | None = None
    until: int | None = None


DEFAULT = ReportRequest()


@dataclass(frozen=True)
class ReportFigures:
    """The figures of the page. Rows have the columns of gold; `begin` is in Unix milliseconds.

    `total` and `queues` are over the whole span, so their rates are means over it. Queues also have
    `peak_backlog` and `peak_workers`, the worst in the span. `buckets` and `hours` are of all
    queues together; a span of one day has no `hours`. `outside` counts the attempts of other times.
    `queues` are those with the most attempts, `other_queues` the names of all others. A queue's
    backlog is known up to `known_until`.
    """

    span: ReportSpan
    target_ms: int
    outside: int
    total: Row
    buckets: list[Row]
    hours: list[Row]
    queues: list[Row]
    other_queues: list[str]
    queue_buckets: list[Row]
    known_until: Mapping[str, int]
    types: list[Row]
    devices: list[Row]
    errors: list[Row]


def gather(lake: Lake, asked: ReportRequest = DEFAULT) -> ReportFigures:
    """The figures of the lake for a request. Raises `NoHistory`."""
    target = lake.state.target_ms
    per_day = lake.read(FACTS).groupBy("date").agg(F.sum("attempts").alias("n"))
    counts = {row["date"]: row["n"] for row in per_day.collect() if row["n"]}
    if target is None or not counts:
        raise NoHistory(f"{lake.path} has no history: bring some in by zq pipeline run")
    span = _span(lake, asked, counts)
    with ReportQueries(lake, span, target) as shown:
        total = shown.total()
        buckets = shown.by_time(span.size)
        every = shown.queues()
        queues = every[:MOST_QUEUES]
        queue_buckets = shown.queues_by_time([row["queue"] for row in queues])
        return ReportFigures(
            span=span,
            target_ms=target,
            outside=sum(counts.values()) - total["attempts"],
            total=total,
            buckets=buckets,
            hours=_hours(shown, span, buckets),
            queues=[_with_peaks(row, queue_buckets) for row in queues],
            other_queues=[row["queue"] for row in every[MOST_QUEUES:]],
            queue_buckets=queue_buckets,
            known_until=shown.known_until(),
            types=shown.types(),
            devices=shown.devices(),
            errors=shown.errors(),
        )


def _hours(shown: ReportQueries, span: ReportSpan, buckets: list[Row]) -> list[Row]:
    if len(span.days) == 1:
        return []
    return buckets if span.size == HOUR_MS else shown.by_time(HOUR_MS)


def _span(lake: Lake, asked: ReportRequest, counts: Mapping[date, int]) -> ReportSpan:
    """The requested time, as far as there is history."""
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
    return ReportSpan.fitted(max(first, since), min(last + 1, until), attempts)


def _last_day(counts: Mapping[date, int]) -> date:
    """The last day, without the latest `OUTLIERS` of the attempts."""
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
