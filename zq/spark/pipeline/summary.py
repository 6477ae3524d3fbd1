"""Summaries of gold's sums: rates, percentiles, backlog and workers needed.

The step computes each day again whose sums have changed, and all days if the target changes.

- failure_rate: failed and dead among attempts that ran to an end (completed, failed, dead).
- backlog: attempts that waited, on average over the hour (Little: time waited over time).
- arrivals_per_s, served_per_s: attempts that became ready, and that ran to their end.
- service_rate: attempts that one busy worker finishes in a second.
- busy_workers: workers that were busy, on average over the hour.
- workers_needed: see `zq.spark.pipeline.estimates`; for the arrivals and run times of that hour.

Rates are over the whole hour; the last hour of the history grows while it is under way. An attempt
that still waits is in no history yet, so the backlog does not count it.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from zq.spark.pipeline.estimates import percentiles, workers_needed
from zq.spark.pipeline.gold import KEY
from zq.spark.pipeline.lake import Lake, LakeTransaction
from zq.spark.pipeline.ledger import LakeCommit
from zq.spark.pipeline.tables import FACT_SUMS, FACTS, HISTOGRAMS, HOUR_MS, HOURLY, QUEUES, Table

STEP = "summary"


def add_summary(lake: Lake, commits: list[LakeCommit], target_ms: int) -> LakeCommit:
    """Bring the summaries up to date with the sums that these commits changed."""
    transaction = lake.begin(STEP)
    days = lake.partitions(FACTS, commits)
    if lake.state.target_ms != target_ms:
        days = lake.files.folders(lake.root(FACTS))
    for table in (HOURLY, QUEUES):
        _summarise(transaction, lake, table, days, target_ms)
    consumed = commits[-1].id if commits else lake.state.consumed[STEP]
    return transaction.commit(consumed, target_ms=target_ms)


def _summarise(
    transaction: LakeTransaction, lake: Lake, table: Table, days: list[str], target_ms: int
) -> None:
    keys = [name for name in KEY if name in table.schema.names]
    facts = lake.read_partitions(FACTS, days)
    histograms = lake.read_partitions(HISTOGRAMS, days)
    summed = facts.groupBy(*keys).agg(*(F.sum(name).alias(name) for name in FACT_SUMS))
    known = summed.join(percentiles(histograms, keys), keys, "left")
    frame = with_workers(with_rates(known), target_ms).select(*table.schema.names)
    transaction.replace(table, days, frame.repartition("date").sortWithinPartitions(*keys))


def with_rates(sums: DataFrame, hours: float = 1) -> DataFrame:
    """Sums over `hours` hours, with the columns in the list above but `workers_needed`; also
    `run_s`, the mean run, and `variation`, the squared coefficient of variation of runs."""
    seconds, millis = hours * 3600, hours * HOUR_MS
    run_s = F.try_divide(F.col("run_ms"), F.col("runs") * 1000)
    variation = F.try_divide(
        F.col("run_ms_squared") * F.col("runs"), F.col("run_ms").cast("double") * F.col("run_ms")
    )
    ended = F.col("completed") + F.col("failed") + F.col("dead")
    return sums.withColumns(
        {
            "failure_rate": F.try_divide(F.col("failed") + F.col("dead"), ended),
            "backlog": F.col("waiting_ms") / millis,
            "arrivals_per_s": F.col("arrivals") / seconds,
            "served_per_s": F.col("runs") / seconds,
            "service_rate": F.try_divide(F.lit(1), run_s),
            "busy_workers": F.col("busy_ms") / millis,
            "run_s": run_s,
            # Rounding may make the variation slightly negative.
            "variation": F.greatest(variation - 1, F.lit(0)),
        }
    )


def with_workers(rated: DataFrame, target_ms: int) -> DataFrame:
    """Sums with their rates, and `workers_needed` to wait less than `target_ms`."""
    arrivals, run_s, variation = map(F.col, ("arrivals_per_s", "run_s", "variation"))
    return rated.withColumns(
        {
            "workers_needed": workers_needed(arrivals, run_s, variation, target_ms / 1000),
            "target_ms": F.lit(target_ms).cast("bigint"),
        }
    )
