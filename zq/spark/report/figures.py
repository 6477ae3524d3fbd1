"""The figures of the report, added up by Spark from the lake.

What comes back is small: a row an hour and queue at most, of the days and queues that are shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from zq.spark.errors import NoHistory
from zq.spark.formats import Table
from zq.spark.histogram import percentiles
from zq.spark.lake import Lake
from zq.spark.summary import with_rates
from zq.spark.tables import ATTEMPTS, ERRORS, FACT_SUMS, FACTS, HISTOGRAMS, QUEUES

MOST_QUEUES = 8
MOST_TYPES = 12
MOST_DEVICES = 20
MOST_ERRORS = 10

OUTLIERS = 0.001
"""This share of the attempts may lie after the last day that is shown: a device whose clock is
years ahead must not decide which days are."""


@dataclass(frozen=True)
class Figures:
    """What the page shows. Rows have the columns of gold; `hour` is in Unix milliseconds.

    `total` and `queues` are over all days shown, so their rates are means over these, and queues
    have `peak_backlog` and `peak_workers` of their worst hours; `hours` are of all queues together.
    `outside` counts attempts of other days.
    """

    first: date
    last: date
    target_ms: int
    outside: int
    total: Row
    hours: list[Row]
    queues: list[Row]
    queue_hours: list[Row]
    types: list[Row]
    devices: list[Row]
    errors: list[Row]

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]


def gather(lake: Lake, days: int) -> Figures:
    """The figures of the last `days` days of the lake's history. Raises `NoHistory`."""
    target = lake.state.target_ms
    per_day = lake.read(FACTS).groupBy("date").agg(F.sum("attempts").alias("n"))
    counts = {row["date"]: row["n"] for row in per_day.collect() if row["n"]}
    if target is None or not counts:
        raise NoHistory(f"{lake.path} has no history: bring some in by zq pipeline run")
    last = _last_day(counts)
    first = max(last - timedelta(days=days - 1), min(counts))
    shown = Shown(lake, first, last, target)
    queues = shown.queues()
    names = [row["queue"] for row in queues]
    return Figures(
        first=first,
        last=last,
        target_ms=target,
        outside=sum(n for day, n in counts.items() if not first <= day <= last),
        total=shown.summed([]).collect()[0],
        hours=_in_millis(shown.summed(["hour"])).orderBy("hour").collect(),
        queues=queues,
        queue_hours=_in_millis(shown.rows(QUEUES).where(F.col("queue").isin(names)))
        .orderBy("hour", "queue")
        .collect(),
        types=shown.types(),
        devices=shown.devices(),
        errors=shown.errors(),
    )


@dataclass(frozen=True)
class Shown:
    """The lake within the days that are shown."""

    lake: Lake
    first: date
    last: date
    target_ms: int

    def rows(self, table: Table) -> DataFrame:
        return self.lake.read(table).where(F.col("date").between(self.first, self.last))

    def summed(self, keys: list[str]) -> DataFrame:
        """Facts and histograms added up by `keys`, and what follows from them."""
        sums = self.rows(FACTS).groupBy(*keys).agg(*(F.sum(n).alias(n) for n in FACT_SUMS))
        known = percentiles(self.rows(HISTOGRAMS), keys)
        joined = sums.join(known, keys, "left") if keys else sums.crossJoin(known)
        days = (self.last - self.first).days + 1
        return with_rates(joined, self.target_ms, 1 if "hour" in keys else 24 * days)

    def queues(self) -> list[Row]:
        peaks = (
            self.rows(QUEUES)
            .groupBy("queue")
            .agg(
                F.max("backlog").alias("peak_backlog"),
                F.max("workers_needed").alias("peak_workers"),
            )
        )
        joined = self.summed(["queue"]).join(peaks, "queue")
        return joined.orderBy(F.desc("attempts"), "queue").limit(MOST_QUEUES).collect()

    def types(self) -> list[Row]:
        """Queue and type with the most failures first; those that never fail are left out."""
        names = ("attempts", "completed", "failed", "dead")
        sums = self.rows(FACTS).groupBy("queue", "type").agg(*(F.sum(n).alias(n) for n in names))
        failures = F.col("failed") + F.col("dead")
        ranked = sums.where(failures > 0).orderBy(F.desc(failures), "queue", "type")
        return ranked.limit(MOST_TYPES).collect()

    def devices(self) -> list[Row]:
        """Devices, those that fail most first."""
        ended = F.col("outcome").isin("completed", "failed", "dead")
        failed = F.col("outcome").isin("failed", "dead")
        summed = (
            self.rows(ATTEMPTS)
            .groupBy("device")
            .agg(
                F.count("*").alias("attempts"),
                F.try_divide(F.count_if(failed), F.count_if(ended)).alias("failure_rate"),
                F.avg("wait_ms").alias("mean_wait_ms"),
                F.avg("run_ms").alias("mean_run_ms"),
                F.count_if("skewed").alias("skewed"),
                F.max(F.unix_millis("finished_at")).alias("last_seen"),
            )
        )
        ranked = summed.orderBy(F.desc_nulls_last("failure_rate"), "device")
        return ranked.limit(MOST_DEVICES).collect()

    def errors(self) -> list[Row]:
        summed = (
            self.rows(ERRORS)
            .groupBy("queue", "type", "error_type", "fingerprint")
            .agg(
                F.min("message").alias("message"),
                F.sum("count").alias("count"),
                F.max(F.unix_millis("hour")).alias("last_hour"),
            )
        )
        return summed.orderBy(F.desc("count"), "fingerprint").limit(MOST_ERRORS).collect()


def _last_day(counts: Mapping[date, int]) -> date:
    """The last day but for `OUTLIERS` of the attempts."""
    later = 0
    for day in sorted(counts, reverse=True):
        later += counts[day]
        if later > OUTLIERS * sum(counts.values()):
            return day
    return max(counts)


def _in_millis(rows: DataFrame) -> DataFrame:
    return rows.withColumn("hour", F.unix_millis("hour"))
