"""The pipeline: from exported segments to bronze, silver and gold.

    segments ─► bronze ─► attempts ─┬─► jobs
                                    └─► gold ─► summary

Each step is one commit of the lake's ledger, so a run that is killed anywhere is completed by the
next. Nothing but lists of files and partitions comes to the driver.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from zq.spark import bronze, gold, segments, silver, summary
from zq.spark.lake import Lake
from zq.spark.ledger import Commit
from zq.spark.progress import Progress, Step
from zq.spark.tables import BRONZE, REJECTED

DEFAULT_TARGET_MS = 10_000

FOLLOWS = {
    silver.ATTEMPTS_STEP: bronze.STEP,
    silver.JOBS_STEP: silver.ATTEMPTS_STEP,
    gold.STEP: silver.ATTEMPTS_STEP,
    summary.STEP: gold.STEP,
}
"""Step → the step whose commits it takes, in the order in which they run."""


@dataclass(frozen=True)
class Options:
    """`target_ms` is the wait below which 95 % of the attempts shall stay (`workers_needed`)."""

    target_ms: int = DEFAULT_TARGET_MS


def open_lake(spark: SparkSession, path: str) -> Lake:
    """The lake at `path`, with what a killed run left half done completed."""
    lake = Lake(spark, path, FOLLOWS)
    lake.recover()
    return lake


def run(
    spark: SparkSession,
    folders: Iterable[str],
    lake_path: str,
    progress: Progress,
    options: Options = Options(),
) -> None:
    """Bring the lake up to date with the segments below `folders`."""
    lake = open_lake(spark, lake_path)
    found = segments.find(lake.files, folders, lake.state.sources)
    for info in found.partial:
        progress.say(f"{info.path} has not the size that its manifest says: left for the next run")
    if found.fresh:
        with progress.step(bronze.STEP, spark.sparkContext) as step:
            rows = segments.read(spark, found.fresh)
            sources = {info.path: (info.size, info.modified_at) for info in found.fresh}
            count = f"{len(found.fresh):,} segments"
            with segments.naming_what_is_broken():
                report_bronze(step, bronze.ingest(lake, rows, sources), count)
    else:
        progress.say(f"no new segments; {found.known} are in the lake already")
    refine(lake, progress, options)


def report_bronze(step: Step, commit: Commit, source: str) -> None:
    """Have the step tell what became of the lines of `source`."""
    step.result = f"{commit.tables[BRONZE.name].rows:,} new records of {source}"
    if rejected := commit.tables[REJECTED.name].rows:
        step.result += f"; {rejected:,} lines are no records: see {REJECTED.name} in the lake"


def refine(lake: Lake, progress: Progress, options: Options) -> None:
    """Have every step after bronze take what it has not yet taken."""
    makers: dict[str, Callable[[list[Commit]], Commit]] = {
        silver.ATTEMPTS_STEP: lambda commits: silver.add_attempts(lake, commits),
        silver.JOBS_STEP: lambda commits: silver.add_jobs(lake, commits),
        gold.STEP: lambda commits: gold.add_gold(lake, commits),
        summary.STEP: lambda commits: summary.add_summary(lake, commits, options.target_ms),
    }
    for name, before in FOLLOWS.items():
        commits = lake.state.waiting_for(name, before)
        retarget = name == summary.STEP and lake.state.target_ms not in (None, options.target_ms)
        if commits or retarget:
            with progress.step(name, lake.spark.sparkContext) as step:
                made = makers[name](commits)
                step.result = ", ".join(
                    f"{change.rows:,} rows of {table}" for table, change in made.tables.items()
                )
