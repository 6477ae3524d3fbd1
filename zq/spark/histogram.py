"""Histograms of durations that can be added up, and the percentiles that they give.

The buckets are those of DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile
sketch with relative-error guarantees", VLDB 2019): with g = (1 + a) / (1 - a), bucket i + 1 holds
the durations in (g^(i-1), g^i] milliseconds, and bucket 0 those of 0. Whatever lies in a bucket is
within a of its middle, 2 g^i / (g + 1). So a percentile from a histogram, or from any sum of
histograms, is within a = 2 % of the exact one of all durations (nearest rank).
"""

import math

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

ACCURACY = 0.02
_GAMMA = (1 + ACCURACY) / (1 - ACCURACY)

PERCENTILES = (50, 95, 99)


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

    Takes rows of `keys`, `measure`, `bucket` and `count`; histograms of the same keys are added up.
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
