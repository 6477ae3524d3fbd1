"""Queries of a lake within the span of a report. Spark adds the rows up.

Gold has the sums of hours. For shorter buckets, the sums are made from the attempts, in
the same way.
"""

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from zq.spark.pipeline import gold
from zq.spark.pipeline.estimates import percentiles
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.summary import with_rates, with_workers
from zq.spark.pipeline.tables import (
    ATTEMPTS,
    ERRORS,
    FACT_SUMS,
    FACTS,
    HISTOGRAMS,
    HOUR_MS,
    Table,
    floor_to,
)
from zq.spark.report.scale import ReportSpan

MOST_QUEUES = 8
MOST_TYPES = 12
MOST_DEVICES = 20
MOST_ERRORS = 10


class ReportQueries:
    """Queries of the lake within the span. Times in rows are Unix milliseconds; `begin` is the
    beginning of a bucket.

    As a context manager it keeps the sums that several figures need.
    """

    def __init__(self, lake: Lake, span: ReportSpan, target_ms: int) -> None:
        self._span = span
        self._target_ms = target_ms
        # An attempt that ends after the span may have waited within it.
        self._attempts = lake.read(ATTEMPTS).where(F.col("date") >= span.days[0])
        within = (span.since, span.until)
        if span.size < HOUR_MS:
            touched = gold.contributions(self._attempts, span.size, within)
            sums = [F.sum(name).alias(name) for name in FACT_SUMS]
            facts = touched.groupBy("hour", "queue", "type").agg(*sums)
            histograms = gold.durations(self._attempts, span.size)
            errors = gold.errors(self._attempts, span.size)
        else:
            facts, histograms, errors = (
                self._gold(lake, table) for table in (FACTS, HISTOGRAMS, ERRORS)
            )
        self._facts = self._begun(facts).cache()
        self._histograms = self._begun(histograms).cache()
        self._error_rows = self._begun(errors)

    def __enter__(self) -> "ReportQueries":
        return self

    def __exit__(self, *_: object) -> None:
        self._facts.unpersist()
        self._histograms.unpersist()

    def total(self) -> Row:
        """The sums over everything. Rates are means over the span."""
        return self._summed([], self._span.hours).collect()[0]

    def by_time(self, size: int) -> list[Row]:
        """All queues together, for each `size` milliseconds with any attempt."""
        return self._summed(["begin"], size / HOUR_MS, size).orderBy("begin").collect()

    def queues(self) -> list[Row]:
        """The queues, those with the most attempts first."""
        summed = self._summed(["queue"], self._span.hours)
        return summed.orderBy(F.desc("attempts"), "queue").collect()

    def known_until(self) -> dict[str, int]:
        """Until when the backlog of each queue is known: when the newest job was ready of those
        whose attempts have ended. Jobs that were ready later may wait still, and no history has
        them."""
        ready = F.when(~F.col("skewed"), F.unix_millis("ready_at"))
        known = self._attempts.groupBy("queue").agg(F.max(ready).alias("until")).collect()
        return {row["queue"]: row["until"] for row in known if row["until"] is not None}

    def queues_by_time(self, queues: list[str]) -> list[Row]:
        """For each bucket and queue: the average `backlog`, the most that waited at once
        (`peak_backlog`), and `workers_needed` of its worst hour (or shorter time)."""
        size, grain = self._span.size, self._span.grain
        facts = self._facts.where(F.col("queue").isin(queues))
        keys = ["begin", "queue"]
        rated = with_rates(_sums(facts, keys), grain / HOUR_MS)
        needed = with_workers(rated, self._target_ms)
        buckets = needed.groupBy(floor_to(F.col("begin"), size).alias("begin"), "queue").agg(
            (F.sum("waiting_ms") / size).alias("backlog"),
            F.max("workers_needed").alias("workers_needed"),
        )
        joined = buckets.join(self._peaks(buckets.select(*keys)), keys, "left")
        return joined.orderBy(*keys).collect()

    def types(self) -> list[Row]:
        """Queue and type, the most failures first; types without failures are left out."""
        names = ("attempts", "completed", "failed", "dead")
        sums = self._facts.groupBy("queue", "type").agg(*(F.sum(n).alias(n) for n in names))
        failures = F.col("failed") + F.col("dead")
        ranked = sums.where(failures > 0).orderBy(F.desc(failures), "queue", "type")
        return ranked.limit(MOST_TYPES).collect()

    def devices(self) -> list[Row]:
        """Devices, the highest failure rate first."""
        ended = F.col("outcome").isin("completed", "failed", "dead")
        failed = F.col("outcome").isin("failed", "dead")
        finished = F.unix_millis("finished_at")
        summed = (
            self._attempts.where(self._inside(finished))
            .groupBy("device")
            .agg(
                F.count("*").alias("attempts"),
                F.try_divide(F.count_if(failed), F.count_if(ended)).alias("failure_rate"),
                F.avg("wait_ms").alias("mean_wait_ms"),
                F.avg("run_ms").alias("mean_run_ms"),
                F.count_if("skewed").alias("skewed"),
                F.max(finished).alias("last_seen"),
            )
        )
        ranked = summed.orderBy(F.desc_nulls_last("failure_rate"), "device")
        return ranked.limit(MOST_DEVICES).collect()

    def errors(self) -> list[Row]:
        """Causes, the most frequent first."""
        summed = self._error_rows.groupBy("queue", "type", "error_type", "fingerprint").agg(
            F.min("message").alias("message"),
            F.sum("count").alias("count"),
            F.max("begin").alias("last"),
        )
        return summed.orderBy(F.desc("count"), "fingerprint").limit(MOST_ERRORS).collect()

    def _gold(self, lake: Lake, table: Table) -> DataFrame:
        days = self._span.days
        return lake.read(table).where(F.col("date").between(days[0], days[-1]))

    def _begun(self, rows: DataFrame) -> DataFrame:
        begin = F.unix_millis("hour")
        return rows.withColumn("begin", begin).where(self._inside(begin))

    def _inside(self, millis: Column) -> Column:
        return (millis >= self._span.since) & (millis < self._span.until)

    def _summed(self, keys: list[str], hours: float, size: int | None = None) -> DataFrame:
        """Facts and histograms added up by `keys`, with their rates and percentiles."""
        facts, histograms = self._facts, self._histograms
        if size is not None:
            begin = floor_to(F.col("begin"), size)
            facts, histograms = (each.withColumn("begin", begin) for each in (facts, histograms))
        sums, known = _sums(facts, keys), percentiles(histograms, keys)
        joined = sums.join(known, keys, "left") if keys else sums.crossJoin(known)
        return with_rates(joined, hours)

    def _peaks(self, buckets: DataFrame) -> DataFrame:
        """The most attempts that waited at once, for each of these buckets and queues."""
        ready, left = (
            F.unix_millis(each) for each in ("ready_at", F.coalesce("dequeued_at", "finished_at"))
        )
        since = F.lit(self._span.since)
        waits = self._attempts.where(
            ~F.col("skewed") & (left > ready) & (left > since) & (ready < self._span.until)
        )
        changes = F.explode(
            F.array(
                F.struct(F.greatest(ready, since).alias("at"), F.lit(1).alias("change")),
                F.struct(left.alias("at"), F.lit(-1).alias("change")),
            )
        )
        moved = waits.select("queue", changes.alias("each")).select("queue", "each.*")
        # A job that waits at the beginning of a bucket counts there, even if nothing changes in it.
        still = buckets.select("queue", F.col("begin").alias("at"), F.lit(0).alias("change"))
        net = moved.union(still).groupBy("queue", "at").agg(F.sum("change").alias("change"))
        placed = net.withColumn("begin", floor_to(F.col("at"), self._span.size))
        # Two steps, so that no queue is one task: each bucket alone, then the buckets before it.
        here = Window.partitionBy("queue", "begin").orderBy("at")
        by_bucket = placed.withColumn("waiting", F.sum("change").over(here))
        peaks = by_bucket.groupBy("queue", "begin").agg(
            F.max("waiting").alias("most"), F.sum("change").alias("change")
        )
        until_here = Window.partitionBy("queue").orderBy("begin")
        before = F.sum("change").over(until_here) - F.col("change")
        return peaks.select("queue", "begin", (before + F.col("most")).alias("peak_backlog"))


def _sums(facts: DataFrame, keys: list[str]) -> DataFrame:
    return facts.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in FACT_SUMS))
