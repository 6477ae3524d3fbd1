"""Writes made-up histories of a fleet of devices for the pipeline, with Spark.

Devices work more by day than by night and less at the weekend. One queue has too few workers in the
afternoons, one job type fails often, and on one evening a service that several types need is down.
Every record follows from its number alone: the same call writes the same history.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from zq.features.history.model import segment_name

DAYS = 14
START = 1_767_571_200_000
"""Monday, 2026-01-05 00:00 UTC."""

HOUR_MS = 3_600_000
SEGMENT = 100_000
"""Records in a segment."""

QUEUES = {
    "mail": ("welcome", "receipt", "digest"),
    "images": ("thumbnail", "scan"),
    "payments": ("charge", "refund"),
    "search": ("index",),
    "reports": ("daily", "export"),
    "webhooks": ("deliver",),
}
MEAN_RUN_MS = {"mail": 220, "images": 1400, "payments": 480, "search": 90, "reports": 9000}
DAILY = (2, 1, 1, 1, 1, 2, 4, 7, 11, 13, 14, 13, 11, 12, 14, 14, 12, 10, 8, 6, 5, 4, 3, 2)
"""How busy each hour of a day is, in shares of their sum."""


def write_histories(
    spark: SparkSession, folder: Path, records: int, devices: int, name: str = "edge"
) -> int:
    """Write about `records` records of `devices` devices as segments. Returns their number.

    The devices are called `name`-01 and so on.
    """
    each = max(1, records // devices)
    rows = _records(spark, each, devices, name)
    parts = rows.repartition(F.col("device"), F.floor((F.col("seq") - 1) / SEGMENT))
    chunked = parts.withColumn("part", F.floor((F.col("seq") - 1) / SEGMENT)).withColumn(
        "host", F.col("device")
    )
    ordered = chunked.sortWithinPartitions("host", "part", "seq")
    draft = folder / "_draft"
    ordered.write.partitionBy("host", "part").option("compression", "gzip").json(str(draft))
    for path in sorted(draft.rglob("*.json.gz")):
        device = path.parent.parent.name.partition("=")[2]
        first = int(path.parent.name.partition("=")[2]) * SEGMENT + 1
        segment = segment_name(f"epoch-{device}", first, min(first + SEGMENT - 1, each))
        (folder / device).mkdir(parents=True, exist_ok=True)
        path.rename(folder / device / segment)
    shutil.rmtree(draft)
    return each * devices


def _records(spark: SparkSession, each: int, devices: int, name: str) -> DataFrame:
    rows = spark.range(each * devices).select(
        (F.col("id") % each).alias("n"), F.floor(F.col("id") / each).cast("int").alias("d")
    )
    kinds = [(queue, kind) for queue, types in QUEUES.items() for kind in types]
    names = F.array(*(F.struct(F.lit(q).alias("q"), F.lit(t).alias("t")) for q, t in kinds))
    hours = [hour for hour, share in enumerate(DAILY) for _ in range(share)]
    day = F.floor(F.col("n") * DAYS / each)
    rows = rows.withColumns(
        {
            "kind": F.element_at(names, (1 + _chance("kind") * len(kinds)).cast("int")),
            "day": F.when(
                (day % 7 >= 5) & (_chance("weekend") < 0.6), F.pmod(day - 2, F.lit(DAYS))
            ).otherwise(day),
            "hour": F.element_at(
                F.array(*map(F.lit, hours)), (1 + _chance("hour") * len(hours)).cast("int")
            ),
        }
    )
    rows = rows.withColumns(
        {
            "queue": F.col("kind.q"),
            "type": F.col("kind.t"),
            "ready_at": (
                F.lit(START)
                + (F.col("day") * 24 + F.col("hour")) * HOUR_MS
                + _chance("minute") * HOUR_MS
            ).cast("bigint"),
        }
    )
    return _run(rows, name)


def _run(rows: DataFrame, name: str) -> DataFrame:
    """The outcome of each attempt."""
    queue, kind = F.col("queue"), F.col("type")
    mean = F.lit(300)
    for slow, millis in MEAN_RUN_MS.items():
        mean = F.when(queue == slow, millis).otherwise(mean)
    down = (F.col("day") == 9) & F.col("hour").between(17, 19)
    crowded = F.when((queue == "images") & F.col("hour").between(13, 17), 60).otherwise(1)
    longer = F.when(down & queue.isin("payments", "webhooks"), 40).otherwise(crowded)
    wait = (-F.log(1 - _chance("wait")) * 900 * longer).cast("bigint")
    run = (F.exp(_normal("run") * 0.8) * mean).cast("bigint") + 1
    rate = F.when(down & queue.isin("payments", "webhooks"), 0.62)
    rate = rate.when(kind == "export", 0.11).when(queue == "webhooks", 0.06).otherwise(0.012)
    luck = _chance("luck")
    failed = luck < rate
    dead = luck < rate * 0.08
    dequeued = F.col("ready_at") + wait
    device = F.format_string(f"{name}-%02d", F.col("d") + 1)
    error = _error()
    return rows.select(
        (F.col("n") + 1).alias("seq"),
        F.concat(F.lit("epoch-"), device).alias("epoch"),
        device.alias("device"),
        F.format_string(f"{name}-%02d-%012d", F.col("d"), F.col("n")).alias("job_id"),
        queue,
        kind,
        F.when(dead, 5).otherwise(1).alias("attempt"),
        F.when(dead, "dead").when(failed, "failed").otherwise("completed").alias("outcome"),
        F.col("ready_at").alias("enqueued_at"),
        F.col("ready_at"),
        dequeued.alias("dequeued_at"),
        (dequeued + run).alias("finished_at"),
        F.when(failed, error["kind"]).alias("error_type"),
        F.when(failed, error["text"]).alias("error_message"),
        F.format_string("worker-%d", (F.col("n") % 4).cast("int")).alias("worker"),
        (_chance("bytes") * 900).cast("bigint").alias("payload_bytes"),
        F.lit(32_768).alias("priority"),
    )


def _error() -> Column:
    """The message of a failure: one of a few causes, each in many wordings."""
    number = F.col("n").cast("string")
    causes = [
        ("TimeoutError", F.concat(F.lit("no answer from 10.2.0.7 after "), number, F.lit(" ms"))),
        ("HTTPError", F.concat(F.lit("503 Service Unavailable for order '"), number, F.lit("'"))),
        ("ValueError", F.concat(F.lit("row "), number, F.lit(" has no column 'total'"))),
        ("OSError", F.lit("[Errno 28] No space left on device")),
    ]
    structs = [F.struct(F.lit(kind).alias("kind"), text.alias("text")) for kind, text in causes]
    place = F.floor(F.pow(_chance("cause"), F.lit(1.7)) * len(causes)).cast("int") + 1
    return F.element_at(F.array(*structs), place)


def _chance(what: str) -> Column:
    """A number in [0, 1) that depends on the record and on `what` it decides."""
    bits = F.xxhash64(F.col("n"), F.col("d"), F.lit(what))
    return F.pmod(bits, F.lit(1 << 40)) / float(1 << 40)


def _normal(what: str) -> Column:
    """A number with a standard normal distribution (Box and Muller)."""
    radius = F.sqrt(-2 * F.log(1 - _chance(what)))
    return radius * F.cos(_chance(f"{what} angle") * 6.283185307179586)
