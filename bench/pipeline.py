"""The pipeline over histories of growing size: time by stage, and then with a late device.

It also reads the real history of a server that was under load.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench import proc
from bench.histories import write_histories
from bench.load import Target, in_own_process, run_load
from bench.report import Progress as Line
from bench.report import Table, number
from bench.rows import ROWS
from bench.servers import Lab, ServerError
from zq.spark.pipeline import open_lake, run
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.tables import BRONZE, FACTS
from zq.spark.session import builder, local_quiet

LATE_SHARE = 100
"""The history of the late device is this many times smaller than the rest."""


@dataclass(frozen=True)
class Run:
    """Seconds by stage, for the whole history and then for a late device. Sizes in MB (10^6)."""

    records: int
    generate_s: float
    segments_mb: float
    lake_mb: float
    stages: dict[str, float]
    late_records: int
    late: dict[str, float]
    java_mb: float
    """The highest resident memory of Spark's Java so far, in MiB."""


def pipeline(
    lab: Lab, records: list[int], devices: int, real_seconds: float, line: Line
) -> list[Run]:
    """Run every size. The real history comes first, if `real_seconds` asks for one."""
    spark = local_quiet(builder("local[*]")).getOrCreate()
    try:
        real = [_real(spark, lab, real_seconds, line)] if real_seconds else []
        return real + [_run(spark, lab.directory / str(n), n, devices, line) for n in records]
    finally:
        line.clear()
        spark.stop()


def _run(spark: SparkSession, place: Path, records: int, devices: int, line: Line) -> Run:
    line.show(f"{records:,} records: writing the history")
    began = time.perf_counter()
    made = write_histories(spark, place / "fleet", records, devices)
    generate_s = time.perf_counter() - began
    late = write_histories(spark, place / "late", max(1, records // LATE_SHARE), 1, "late")
    line.show(f"{made:,} records: the pipeline")
    lake = place / "lake"
    stages = _timed(spark, [str(place / "fleet")], lake, line)
    line.show(f"{made:,} records and {late:,} late ones")
    late_stages = _timed(spark, [str(place / "fleet"), str(place / "late")], lake, line)
    found = Run(
        records=made,
        generate_s=generate_s,
        segments_mb=_megabytes(place / "fleet"),
        lake_mb=_megabytes(lake),
        stages=stages,
        late_records=late,
        late=late_stages,
        java_mb=proc.peak_rss_mb(java_of(spark)),
    )
    shutil.rmtree(place)
    return found


def _real(spark: SparkSession, lab: Lab, seconds: float, line: Line) -> Run:
    """Load a server with the row `life`, read its history, load it for a tenth more, read again.

    Raises `ServerError` unless the lake has each record once.
    """
    lake = lab.directory / "real"
    with lab.server("zq-history") as target:
        url = f"http://127.0.0.1:{target.port}"
        line.show(f"{seconds:g} s of load")
        first = _loaded(target, seconds)
        line.show(f"{first:,} real records: the pipeline")
        stages = _timed(spark, [url], lake, line)
        line.show("more load")
        last = _loaded(target, seconds / 10)
        line.show(f"{last - first:,} more records")
        more = _timed(spark, [url], lake, line)
    there = open_lake(spark, str(lake))
    named = there.read(BRONZE).agg(F.count("*"), F.count_distinct("epoch", "seq")).collect()[0]
    counted = there.read(FACTS).agg(F.sum("attempts")).collect()[0]
    if {*named, *counted} != {last}:
        raise ServerError(f"{last:,} records were there, the lake has {named} and {counted}")
    found = Run(
        records=first,
        generate_s=seconds,
        segments_mb=0,
        lake_mb=_megabytes(lake),
        stages=stages,
        late_records=last - first,
        late=more,
        java_mb=proc.peak_rss_mb(java_of(spark)),
    )
    shutil.rmtree(lake)
    return found


def _loaded(target: Target, seconds: float) -> int:
    """Load the server. Return how many records it has then."""
    in_own_process(run_load, target, ROWS["life"].spec(10, seconds))
    # The workers' last jobs are returned when they leave, and that is recorded too.
    time.sleep(1)
    with urlopen(f"http://127.0.0.1:{target.port}/history?limit=1") as answer:
        return int(json.load(answer)["max_seq"])


def _timed(spark: SparkSession, origins: list[str], lake: Path, line: Line) -> dict[str, float]:
    progress = RunProgress(lambda _: None, line.show)
    run(spark, origins, str(lake), progress)
    # If a server is read in several batches, each step runs several times.
    seconds: dict[str, float] = defaultdict(float)
    for step in progress.steps:
        seconds[step.name] += step.seconds
    return dict(seconds)


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def java_of(spark: SparkSession) -> int:
    """The process id of the driver. In local mode it is all of Spark."""
    machine: Any = spark.sparkContext._jvm
    return int(machine.java.lang.ProcessHandle.current().pid())


def pipeline_table(found: list[Run]) -> Table:
    """A line a stage, with a column of seconds and one of records/s for each size."""
    header = ["stage"]
    for each in found:
        header += [f"{each.records:,}: s", "records/s", f"{each.late_records:,} late: s"]
    names = list(found[0].stages)
    lines = []
    for name in [*names, "all"]:
        cells = [name]
        for each in found:
            whole, late = (
                sum(stages.values()) if name == "all" else stages[name]
                for stages in (each.stages, each.late)
            )
            cells += [number(whole, 1), number(each.records / whole), number(late, 1)]
        lines.append(cells)
    for title, values in (
        ("segments, MB", [each.segments_mb for each in found]),
        ("lake, MB", [each.lake_mb for each in found]),
        ("peak RSS of Java, MiB", [each.java_mb for each in found]),
        ("writing the history, s", [each.generate_s for each in found]),
    ):
        lines.append([title, *(cell for value in values for cell in (number(value), "", ""))])
    return Table(header, lines)
