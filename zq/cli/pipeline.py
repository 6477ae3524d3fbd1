"""`zq pipeline`: the history of one server or a fleet as a lake, and a report about it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zq.cli.moments import Moment
from zq.cli.terminal import say, say_over
from zq.cli.words import MILLISECONDS
from zq.kinds import DURATION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zq.spark.progress import Progress

_lake = click.option("--lake", required=True, metavar="DIR", help="Where the lake is or shall be.")
_master = click.option(
    "--master", default="local[*]", show_default=True, help="Spark's master: local, or a cluster."
)
_format = click.option(
    "--format",
    type=click.Choice(["parquet", "delta"]),
    default="parquet",
    show_default=True,
    help="How the lake keeps its tables; delta takes the extra `delta`.",
)


@click.group(
    epilog="""\b
Examples:
  zq pipeline run --from /mnt/usb/edge-7 --from /srv/history --lake /srv/lake
  zq pipeline run --from http://127.0.0.1:7890 --lake /srv/lake --streaming
  zq pipeline report --lake /srv/lake --out report.html
"""
)
def pipeline() -> None:
    """Turn job history into a lake, and the lake into a report.

    Needs Java 17 and the extra: pip install 'zq-queue[spark]'.
    """


@pipeline.command(
    epilog="""\b
Examples:
  zq pipeline run --from /srv/history --lake /srv/lake
  zq pipeline run --from /srv/history --lake /srv/lake --target-wait 30s
  zq pipeline run --from /srv/history --lake /srv/delta --format delta
  zq pipeline run --from hdfs:///history --lake hdfs:///lake --master yarn
"""
)
@click.option(
    "--from",
    "origins",
    required=True,
    multiple=True,
    metavar="DIR|URL",
    help="A directory of exported segments, searched to its depths, or a server. May be repeated.",
)
@_lake
@_format
@_master
@click.option(
    "--target-wait",
    type=MILLISECONDS,
    default="10s",
    show_default=True,
    help="Wait below which 95 % shall stay: workers_needed is for it.",
)
@click.option("--streaming", is_flag=True, help="Go on, taking what comes.")
@click.option(
    "--every",
    type=MILLISECONDS,
    default="10s",
    show_default=True,
    help="With --streaming: how often to look for what is new.",
)
@click.option(
    "--allow-gaps",
    is_flag=True,
    help="Go on where a server has removed records before they were read.",
)
def run(
    origins: tuple[str, ...],
    lake: str,
    format: str,
    master: str,
    target_wait: int,
    streaming: bool,
    every: int,
    allow_gaps: bool,
) -> None:
    """Bring the lake up to date with exported segments and with servers that keep a history.

    Only what is new is read, and a run that was killed is completed by the next. One run at a time
    writes a lake. A server that is down is left for the next run; ZQ_TOKEN holds the secret of a
    key that may read.
    """
    with _spark(master, format) as (spark, progress):
        from zq.spark import pipeline as steps
        from zq.spark.streaming import wait

        options = steps.Options(target_ms=target_wait, allow_gaps=allow_gaps, format=format)
        if not streaming:
            steps.run(spark, origins, lake, progress, options)
            return
        queries = steps.watch(spark, origins, lake, progress, options, every)
        progress.say(f"looking for what is new every {DURATION.show(every)}; Ctrl-C stops it")
        try:
            wait(spark)
        except KeyboardInterrupt:
            for query in queries:
                query.stop()


@pipeline.command(
    epilog="""\b
Examples:
  zq pipeline report --lake /srv/lake --out report.html
  zq pipeline report --lake /srv/lake --out june.html --days 30 --title 'Jobs in June'
  zq pipeline report --lake /srv/lake --from 2026-06-01T11:30 --to 2026-06-01T12:30

Times are UTC where they name no zone. The charts have a point a minute, a few of them, an hour
or a day, whichever the time that is shown has room for.
"""
)
@_lake
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The HTML file.")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=14,
    show_default=True,
    help="How many days to show, the last ones; those before --to, where that is given.",
)
@click.option(
    "--from",
    "since",
    type=Moment(),
    metavar="WHEN",
    help="Show what there is from then on: 2026-01-31, 2026-01-31T18:00, or 90m for so long ago.",
)
@click.option(
    "--to",
    "until",
    type=Moment(),
    metavar="WHEN",
    help="Show what there is before then. [default: the end of the history]",
)
@click.option("--title", default="Job history", show_default=True, help="The page's title.")
@_format
@_master
def report(
    lake: str,
    out: Path,
    days: int,
    since: int | None,
    until: int | None,
    title: str,
    format: str,
    master: str,
) -> None:
    """Render a page about the lake: one HTML file that needs nothing else."""
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--from must be earlier than --to")
    with _spark(master, format) as (spark, progress):
        from zq.spark.pipeline import open_lake
        from zq.spark.report.figures import Asked, gather
        from zq.spark.report.page import render

        with progress.step("figures", spark.sparkContext):
            figures = gather(open_lake(spark, lake, format), Asked(days, since, until))
        with progress.step("page", spark.sparkContext) as step:
            out.write_text(render(figures, title), encoding="utf-8")
            step.result = f"{out}, {out.stat().st_size // 1024} KiB"


@contextmanager
def _spark(master: str, format: str) -> "Iterator[tuple[SparkSession, Progress]]":
    """A session and something to show progress with; errors meant for users end the command."""
    try:
        from pyspark.errors import PySparkRuntimeError

        from zq.spark.delta import with_delta
        from zq.spark.errors import PipelineError, SparkDown
        from zq.spark.progress import Progress
        from zq.spark.quiet import starting_quietly
        from zq.spark.session import builder, local_quiet
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "pyarrow"):
            raise
        raise click.ClickException(
            "this takes the package pyspark: pip install 'zq-queue[spark]'"
        ) from None
    try:
        made = builder(master)
        if master.startswith("local"):
            made = local_quiet(made)
        if format == "delta":
            made = with_delta(made)
        try:
            # A cluster's start takes long, and what it says meanwhile is worth reading.
            with starting_quietly() if master.startswith("local") else nullcontext():
                spark = made.getOrCreate()
        except PySparkRuntimeError as error:
            raise SparkDown from error
        try:
            yield (
                spark,
                Progress(
                    lambda text: say(text, err=True), say_over if sys.stderr.isatty() else None
                ),
            )
        finally:
            spark.stop()
    except PipelineError as error:
        raise click.ClickException(str(error)) from None
