"""What follows bronze, for whatever fills it: the order of the steps, and running them.

bronze ─► attempts ─┬─► jobs
                    └─► gold ─► summary
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from zq.spark import bronze, gold, silver, summary
from zq.spark.formats import Parquet
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
    """`target_ms` is the wait below which 95 % of the attempts shall stay (`workers_needed`).
    `allow_gaps`: go on where a server has removed records before they were read. `format` is how
    the lake keeps its tables, parquet or delta."""

    target_ms: int = DEFAULT_TARGET_MS
    allow_gaps: bool = False
    format: str = Parquet.name


DEFAULTS = Options()


def open_lake(spark: SparkSession, path: str, format: str = Parquet.name) -> Lake:
    """The lake at `path`, with what a killed run left half done completed."""
    lake = Lake(spark, path, FOLLOWS, format)
    lake.recover()
    return lake


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
