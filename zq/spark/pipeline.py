"""The pipeline: from servers and exported segments to bronze, silver and gold.

Each step is one commit of the lake's ledger, so a run that is killed anywhere is completed by the
next. Nothing but lists of files and partitions comes to the driver.
"""

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from zq.spark import bronze, segments
from zq.spark.lake import Lake
from zq.spark.progress import Progress
from zq.spark.refining import DEFAULTS, Options, open_lake, refine, report_bronze
from zq.spark.streaming import Streams

__all__ = ["DEFAULTS", "Options", "open_lake", "run", "watch"]


def run(
    spark: SparkSession,
    origins: Iterable[str],
    lake_path: str,
    progress: Progress,
    options: Options = DEFAULTS,
) -> None:
    """Bring the lake up to date with the segments below folders and the records of servers."""
    lake = open_lake(spark, lake_path, options.format)
    folders, servers = parted(origins)
    if folders:
        _take_segments(lake, folders, progress)
    if servers:
        Streams(lake, progress, options).drain(servers)
    refine(lake, progress, options)


def watch(
    spark: SparkSession,
    origins: Iterable[str],
    lake_path: str,
    progress: Progress,
    options: Options,
    every_ms: int,
) -> list[StreamingQuery]:
    """Do so again and again, until the queries are stopped."""
    lake = open_lake(spark, lake_path, options.format)
    refine(lake, progress, options)
    return Streams(lake, progress, options).watch(*parted(origins), every_ms)


def parted(origins: Iterable[str]) -> tuple[list[str], list[str]]:
    """Folders, and servers: these begin with http:// or https://."""
    given = list(origins)
    servers = [each for each in given if each.startswith(("http://", "https://"))]
    return [each for each in given if each not in servers], servers


def _take_segments(lake: Lake, folders: Sequence[str], progress: Progress) -> None:
    found = segments.find(lake.files, folders, lake.state.sources)
    for info in found.partial:
        progress.say(f"{info.path} has not the size that its manifest says: left for the next run")
    if not found.fresh:
        progress.say(f"no new segments; {found.known} are in the lake already")
        return
    with progress.step(bronze.STEP, lake.spark.sparkContext) as step:
        rows = segments.read(lake.spark, found.fresh)
        sources = {info.path: (info.size, info.modified_at) for info in found.fresh}
        with segments.naming_what_is_broken():
            made = bronze.ingest(lake, rows, sources)
        report_bronze(step, made, f"{len(found.fresh):,} segments")
