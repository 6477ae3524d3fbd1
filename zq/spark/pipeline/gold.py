"""Gold: sums for each queue, type and hour, which can be added up further.

An attempt counts in each hour that it touches: it arrives in one hour, waits and runs in some, and
finishes in one. This follows from the attempt alone. So the sums of new attempts, also of late
ones, are added to the days that they touch, and the step reads no other day.

The sums can also be of shorter times than hours (`size`, in milliseconds). The column `hour` then
has the beginnings of these times. The report uses that for short spans.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from zq.features.history.model import OUTCOMES
from zq.spark.pipeline.estimates import bucket
from zq.spark.pipeline.lake import Lake, folder_of
from zq.spark.pipeline.ledger import LakeCommit
from zq.spark.pipeline.tables import (
    ATTEMPTS,
    ERRORS,
    FACT_SUMS,
    FACTS,
    HISTOGRAMS,
    HOUR_MS,
    Table,
    day_of,
    floor_to,
)

STEP = "gold"

KEY = ["date", "hour", "queue", "type"]
HISTOGRAM_KEY = [*KEY, "measure", "bucket"]
ERROR_KEY = [*KEY, "error_type", "fingerprint"]


def add_gold(lake: Lake, commits: list[LakeCommit]) -> LakeCommit:
    """Add the contributions of the attempts that these commits brought."""
    transaction = lake.begin(STEP)
    attempts = lake.added(ATTEMPTS, commits)
    counts = F.sum("count").alias("count")
    sums = [F.sum(name).alias(name) for name in FACT_SUMS]

    def facts(rows: DataFrame) -> DataFrame:
        return _summed(FACTS, rows, KEY, sums)

    # Only its times tell the days that an attempt has touched before its last one.
    written = transaction.write(FACTS, facts(contributions(attempts)))
    transaction.merge(FACTS, written, lambda old, new: facts(old.unionByName(new)), replace=True)
    days = sorted({folder_of(part) for part in lake.partitions(ATTEMPTS, commits)})
    sample = F.min("message").alias("message")
    for table, rows, key, columns in (
        (HISTOGRAMS, durations(attempts), HISTOGRAM_KEY, [counts]),
        (ERRORS, errors(attempts), ERROR_KEY, [sample, counts]),
    ):
        if any(lake.files_in(table, day) for day in days):
            rows = lake.read_partitions(table, days).unionByName(rows)
        transaction.replace(table, days, _summed(table, rows, key, columns))
    return transaction.commit(commits[-1].id)


def _summed(table: Table, rows: DataFrame, key: list[str], sums: list[Column]) -> DataFrame:
    """One row for each `key`, in few files."""
    one = rows.groupBy(*key).agg(*sums).select(*table.schema.names)
    return one.repartition("date").sortWithinPartitions(*key)


def contributions(
    attempts: DataFrame, size: int = HOUR_MS, within: tuple[int, int] | None = None
) -> DataFrame:
    """A row for each hour that an attempt touches, with its contribution there (`FACT_SUMS`).

    `within` limits the hours: from the first time (Unix ms, the beginning of an hour) to before the
    second.
    """
    ready, finished = F.unix_millis("ready_at"), F.unix_millis("finished_at")
    timed = attempts.withColumns(
        {
            "ready": ready,
            "finished": finished,
            "dequeued": F.unix_millis("dequeued_at"),
            # A job that is cancelled early never becomes ready. Of a skewed one no time is known.
            "placed": ~F.col("skewed") & (ready <= finished),
        }
    )
    first, last = (floor_to(F.col(name), size) for name in ("ready", "finished"))
    spread = F.col("placed")
    if within is not None:
        since, until = within
        # A wait of a year must not become half a million minutes outside the bounds.
        spread &= (F.col("ready") < until) & (F.col("finished") >= since)
        first, through = F.greatest(first, F.lit(since)), F.least(last, F.lit(until - size))
    else:
        through = last
    hours = F.when(spread, F.sequence(first, through, F.lit(size))).otherwise(F.array(last))
    touched = timed.withColumn("begin", F.explode(hours))
    if within is not None:
        touched = touched.where((F.col("begin") >= since) & (F.col("begin") < until))
    return touched.select(*_key("begin"), *_at_the_end(size), *_over_the_hour(size))


def _at_the_end(size: int) -> list[Column]:
    """The contribution of an attempt to the hour in which it finished."""
    ends = F.col("begin") == floor_to(F.col("finished"), size)
    one = F.lit(1).cast("bigint")
    run = F.col("run_ms")
    values = {
        "attempts": one,
        **{name: (F.col("outcome") == name).cast("bigint") for name in OUTCOMES},
        "skewed": F.col("skewed").cast("bigint"),
        "payload_bytes": F.col("payload_bytes"),
        "waits": F.col("wait_ms").isNotNull().cast("bigint"),
        "wait_ms": F.coalesce("wait_ms", F.lit(0)),
        "runs": run.isNotNull().cast("bigint"),
        "run_ms": F.coalesce(run, F.lit(0)),
        "run_ms_squared": F.coalesce(run.cast("double") * run, F.lit(0.0)),
    }
    return [F.when(ends, value).otherwise(0).alias(name) for name, value in values.items()]


def _over_the_hour(size: int) -> list[Column]:
    """The contribution of an attempt to each hour from ready to finished."""
    begin = F.col("begin")
    end = begin + size
    placed, ready, dequeued = F.col("placed"), F.col("ready"), F.col("dequeued")
    left = F.coalesce(dequeued, "finished")

    def share(since: Column, until: Column) -> Column:
        inside = F.least(end, until) - F.greatest(begin, since)
        return F.when(placed & since.isNotNull() & (inside > 0), inside).otherwise(0)

    arrives = F.when(placed, begin == floor_to(ready, size)).otherwise(F.col("skewed"))
    return [
        arrives.cast("bigint").alias("arrivals"),
        share(ready, left).alias("waiting_ms"),
        share(dequeued, F.col("finished")).alias("busy_ms"),
        (placed & (left >= end)).cast("bigint").alias("waiting_at_end"),
    ]


def durations(attempts: DataFrame, size: int = HOUR_MS) -> DataFrame:
    """A row for each wait and each run, with its bucket, under the hour of the attempt's end."""
    both = F.array(
        F.struct(F.lit("wait").alias("measure"), bucket(F.col("wait_ms")).alias("bucket")),
        F.struct(F.lit("run").alias("measure"), bucket(F.col("run_ms")).alias("bucket")),
    )
    rows = attempts.withColumn("duration", F.explode(both)).where("duration.bucket is not null")
    return rows.select(
        *_key(floor_to(F.unix_millis("finished_at"), size)),
        *("duration.measure", "duration.bucket"),
        F.lit(1).cast("bigint").alias("count"),
    )


def errors(attempts: DataFrame, size: int = HOUR_MS) -> DataFrame:
    """A row for each attempt with an error, under the hour of its end."""
    return attempts.where(F.col("fingerprint").isNotNull()).select(
        *_key(floor_to(F.unix_millis("finished_at"), size)),
        *("error_type", "fingerprint"),
        F.substring("error_message", 1, 300).alias("message"),
        F.lit(1).cast("bigint").alias("count"),
    )


def _key(begin: Column | str) -> list[Column]:
    millis = F.col(begin) if isinstance(begin, str) else begin
    return [
        day_of(millis).alias("date"),
        F.timestamp_millis(millis).alias("hour"),
        F.col("queue"),
        F.col("type"),
    ]
