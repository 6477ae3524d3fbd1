"""The steps that follow bronze, in batches and streams alike: their order, and how they run.

bronze ─► attempts ─┬─► jobs
                    └─► gold ─► summary
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from zq.spark.pipeline import bronze, gold, silver, summary
from zq.spark.pipeline.lake import Lake
from zq.spark.pipeline.ledger import LakeCommit
from zq.spark.pipeline.progress import RunProgress, RunStep
from zq.spark.pipeline.tables import BRONZE, REJECTED

DEFAULT_TARGET_MS = 10_000

FOLLOWS = {
    silver.ATTEMPTS_STEP: bronze.STEP,
    silver.JOBS_STEP: silver.ATTEMPTS_STEP,
    gold.STEP: silver.ATTEMPTS_STEP,
    summary.STEP: gold.STEP,
}
"""Step → the step whose commits it takes, in the order in which the steps run."""


@dataclass(frozen=True)
class PipelineOptions:
    """The options of a run. 95 % of the attempts should wait less than `target_ms`
    (`workers_needed`). With `allow_gaps` the run goes on if a server has removed unread records."""

    target_ms: int = DEFAULT_TARGET_MS
    allow_gaps: bool = False


DEFAULTS = PipelineOptions()


def open_lake(spark: SparkSession, path: str) -> Lake:
    """The lake at `path`, after the last commit of a killed run has been completed."""
    lake = Lake(spark, path, FOLLOWS)
    lake.recover()
    return lake


def report_bronze(step: RunStep, commit: LakeCommit, source: str) -> None:
    """Report in the step's line what happened to the lines of `source`."""
    step.result = f"{commit.tables[BRONZE.name].rows:,} new records of {source}"
    if rejected := commit.tables[REJECTED.name].rows:
        step.result += f"; {rejected:,} lines are not records: see {REJECTED.name} in the lake"


def refine(lake: Lake, progress: RunProgress, options: PipelineOptions) -> None:
    """Run every step after bronze that has commits to take."""
    makers: dict[str, Callable[[list[LakeCommit]], LakeCommit]] = {
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
