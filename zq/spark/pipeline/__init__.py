"""The pipeline: from servers and exported segments to bronze, silver and gold.

    segments, servers ─► bronze ─► silver (attempts, jobs) ─► gold (sums) ─► summary (rates)

Each step is one commit of the lake's ledger (`lake`, `ledger`), so the next run completes a run
that was killed anywhere. Only lists of files and partitions come to the driver.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zq.spark.pipeline import bronze, segments
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.progress import RunProgress
from zq.spark.pipeline.steps import DEFAULTS, PipelineOptions, open_lake, refine, report_bronze
from zq.spark.pipeline.streaming import LakeStreams

__all__ = ["DEFAULTS", "PipelineOptions", "open_lake", "run", "watch"]


def run(
    spark: SparkSession,
    origins: Iterable[str],
    lake_path: str,
    progress: RunProgress,
    options: PipelineOptions = DEFAULTS,
) -> None:
    """Bring the lake up to date with the segments below folders and the records of servers."""
    lake = open_lake(spark, lake_path)
    folders, servers = parted(origins)
    if folders:
        _take_segments(lake, folders, progress)
    if servers:
        LakeStreams(lake, progress, options).drain(servers)
    refine(lake, progress, options)


def watch(
    spark: SparkSession,
    origins: Iterable[str],
    lake_path: str,
    progress: RunProgress,
    options: PipelineOptions,
    every_ms: int,
) -> list[StreamingQuery]:
    """Bring the lake up to date again and again, until the queries are stopped."""
    lake = open_lake(spark, lake_path)
    refine(lake, progress, options)
    return LakeStreams(lake, progress, options).watch(*parted(origins), every_ms)


def parted(origins: Iterable[str]) -> tuple[list[str], list[str]]:
    """The folders and the servers among origins: a server begins with http:// or https://."""
    given = list(origins)
    servers = [each for each in given if each.startswith(("http://", "https://"))]
    return [each for each in given if each not in servers], servers


def _take_segments(lake: Lake, folders: Sequence[str], progress: RunProgress) -> None:
    found = segments.find(lake.files, folders, lake.state.sources)
    for info in found.partial:
        progress.say(
            f"{info.path} does not have the size that its manifest says: it is left for the next"
            " run"
        )
    if not found.fresh:
        progress.say(f"no new segments; {found.known} are in the lake already")
        return
    with progress.step(bronze.STEP, lake.spark.sparkContext) as step:
        rows = segments.read(lake.spark, found.fresh)
        sources = {info.path: (info.size, info.modified_at) for info in found.fresh}
        with segments.naming_what_is_broken():
            made = bronze.ingest(lake, rows, sources)
        report_bronze(step, made, f"{len(found.fresh):,} segments")
