"""Estimates from sums: percentiles of durations, and the workers that a target needs.

**Percentiles** come from histograms that can be added up. The buckets are those of DDSketch
(Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile sketch with relative-error
guarantees", VLDB 2019): with g = (1 + a) / (1 - a), bucket i + 1 holds the durations in
(g^(i-1), g^i] milliseconds, and bucket 0 holds the durations of 0. Each duration lies within a of
the middle of its bucket, 2 g^i / (g + 1). So a percentile from a histogram, or from any sum of
histograms, is within a = 2 % of the exact percentile of all durations (nearest rank).

**Workers needed** keep the 95th percentile of waiting under a target. Work that arrives at random
at rate L and takes S on average keeps a = L·S workers busy. With c workers the chance to wait at
all is Erlang's C(c, a), and the chance to wait longer than T is

    P(W > T) = C(c, a) · exp(-(c - a) · T / (S · (1 + v) / 2))

where v is the squared coefficient of variation of run times. The formula is exact for exponential
run times (v = 1; M/M/c; Erlang 1917; Kleinrock, "Queueing Systems" I, 1975, section 3.5). For
others the factor (1 + v) / 2 stretches the wait as in Lee and Longton's approximation of M/G/c
("Queueing processes associated with airline passenger check-in", 1959; Allen, "Probability,
Statistics and Queueing Theory", 1990, section 5.3). C follows from Erlang's B by its recursion
B(0) = 1, B(k) = a·B(k-1) / (k + a·B(k-1)), as C = B / (1 - (a / c) · (1 - B)).

The answer is the smallest c > a with P(W > T) <= 5 %.
"""

import math

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

ACCURACY = 0.02
_GAMMA = (1 + ACCURACY) / (1 - ACCURACY)

PERCENTILES = (50, 95, 99)

LATE = 0.05
"""The share of attempts that may wait longer than the target."""

MOST_WORKERS = 100_000
"""There is no search for offered loads beyond this many workers: spare capacity is noise there."""


def bucket(duration_ms: Column) -> Column:
    """The bucket of a duration, an INT; null for null."""
    position = F.ceil(F.log(duration_ms.cast("double")) / F.lit(math.log(_GAMMA))) + 1
    return F.when(duration_ms <= 0, F.lit(0)).otherwise(position).cast("int")


def middle(number: Column) -> Column:
    """The duration in milliseconds that stands for a bucket."""
    value = F.lit(2 / (_GAMMA + 1)) * F.pow(F.lit(_GAMMA), number - 1)
    return F.when(number == 0, F.lit(0.0)).otherwise(value)


def percentiles(histograms: DataFrame, keys: list[str]) -> DataFrame:
    """One row for each `keys` with `wait_p50_ms`, … `run_p99_ms`.

    The rows have `keys`, `measure`, `bucket` and `count`. Histograms of the same keys are added up.
    """
    group = [*keys, "measure"]
    merged = histograms.groupBy(*group, "bucket").agg(F.sum("count").alias("count"))
    upward = Window.partitionBy(*group).orderBy("bucket")
    ranked = merged.withColumns(
        {
            "below": F.sum("count").over(upward),
            "all": F.sum("count").over(Window.partitionBy(*group)),
        }
    )
    columns = [
        F.min(
            F.when(
                (F.col("measure") == measure) & (F.col("below") >= F.ceil(F.col("all") * p / 100)),
                middle(F.col("bucket")),
            )
        ).alias(f"{measure}_p{p}_ms")
        for measure in ("wait", "run")
        for p in PERCENTILES
    ]
    return ranked.groupBy(*keys).agg(*columns)


def workers_needed(
    arrivals_per_s: Column, run_s: Column, variation: Column, target_s: float
) -> Column:
    """An INT from 1 on, null if run times are unknown; `variation` is v of the module's text."""
    load = arrivals_per_s * run_s
    scale = F.lit(target_s) / (run_s * (1 + variation) / 2)

    def step(found: Column, count: Column) -> Column:
        """`found` has B for one worker fewer, and the answer if there is one already."""
        weight = load * found["blocked"]
        blocked = weight / (count + weight)
        waits = blocked / (1 - load / count * (1 - blocked))
        late = waits * F.exp(-(count - load) * scale)
        enough = (count > load) & (late <= LATE)
        return F.struct(
            blocked.alias("blocked"),
            F.coalesce(found["workers"], F.when(enough, count)).alias("workers"),
        )

    # Square-root staffing: a + x·sqrt(a) workers make less than 5 % of the attempts wait
    # from x = 1.65 on (Halfin and Whitt 1981), so the search ends well before 10.
    most = F.ceil(load + 10 * F.sqrt(load) + 10).cast("int")
    start = F.struct(F.lit(1.0).alias("blocked"), F.lit(None).cast("int").alias("workers"))
    searched = F.aggregate(F.sequence(F.lit(1), most), start, step)["workers"]
    return (
        F.when(load <= 0, F.lit(1))
        .when(load > MOST_WORKERS, F.ceil(load).cast("int"))
        .when(load.isNotNull(), searched)
    )
