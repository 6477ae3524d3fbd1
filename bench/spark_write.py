"""Rows of `spark.range` through the data source: how fast they become jobs, and memory use.

Spark's tasks make and send the rows, a request at a time, so memory must not grow with them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.request import urlopen

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench import proc
from bench.load import Target
from bench.pipeline import java_of
from bench.report import Progress, Table, number
from bench.servers import Lab, ServerError
from zq.spark import register
from zq.spark.session import builder, local_quiet

EVERY_SECONDS = 1.0
DRIVER_MEMORY = "1g"
"""Java fills its memory before it collects garbage. With this little, growth would show."""

WARM_UP = 20_000


@dataclass(frozen=True)
class Look:
    """Resident memory at one time, in MiB: the driver's Java and Python, its Python workers, and
    the server."""

    java: float
    python: float
    workers: float
    server: float


@dataclass(frozen=True)
class Written:
    rows: int
    seconds: float
    looks: list[Look] = field(repr=False)
    """One look a second, while rows are written."""


def spark_write(lab: Lab, rows: int, progress: Progress) -> Written:
    """Write the rows to a new server. Raises `ServerError` unless the server then has all."""
    os.environ.setdefault("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    with lab.server("zq") as target:
        spark = local_quiet(builder("local[*]")).getOrCreate()
        try:
            register(spark)
            _write(spark, target, WARM_UP)
            progress.show(f"{rows:,} rows")
            began = time.perf_counter()
            with _watched(java_of(spark), target.pid) as looks:
                _write(spark, target, rows)
            seconds = time.perf_counter() - began
        finally:
            progress.clear()
            spark.stop()
        with urlopen(f"http://127.0.0.1:{target.port}/jobs/count") as answer:
            stored = json.load(answer)["count"]
        if stored != rows + WARM_UP:
            raise ServerError(f"{rows + WARM_UP:,} rows were written, {stored:,} jobs are there")
    return Written(rows, seconds, looks)


def _write(spark: SparkSession, target: Target, rows: int) -> None:
    payload = F.struct(F.col("id").alias("n"), F.lit("u-000123").alias("user"))
    made = spark.range(rows).select(payload.alias("payload"))
    made.write.format("zq").mode("append").options(
        url=f"http://127.0.0.1:{target.port}", queue="bench", type="send-email"
    ).save()


@contextmanager
def _watched(java: int, server: int) -> Iterator[list[Look]]:
    looks: list[Look] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(EVERY_SECONDS):
            spark = proc.rss_mb(java)
            own = proc.own_rss_mb(java)
            me = proc.own_rss_mb(os.getpid())
            looks.append(Look(own, me, spark - own, proc.rss_mb(server)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield looks
    finally:
        done.set()
        watcher.join()


def spark_write_table(found: Written) -> Table:
    """Memory after a tenth of the time, when Spark has warmed up, at half of it, and at its end."""
    if not found.looks:
        raise ValueError("too few rows to look at: take 1M or more")
    last = len(found.looks) - 1
    times = {"after a tenth": last // 10, "half": last // 2, "end": last}
    shown = [found.looks[at] for at in times.values()]
    names = {
        "java": "driver, Java",
        "python": "driver, Python",
        "workers": "Python workers",
        "server": "server",
    }
    lines = []
    for name, title in names.items():
        most = max(getattr(look, name) for look in found.looks)
        values = [*(getattr(look, name) for look in shown), most]
        lines.append([f"RSS MiB, {title}", *map(number, values)])
    rate = number(found.rows / found.seconds)
    lines.insert(0, [f"{found.rows:,} rows in {number(found.seconds)} s: jobs/s", "", "", rate, ""])
    return Table(["", *times, "most"], lines)
