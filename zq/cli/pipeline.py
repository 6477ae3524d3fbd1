"""`zq pipeline`: the history of one server or a fleet as a lake, and a report about it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from zq.cli.terminal import say, say_over
from zq.cli.words import MILLISECONDS, Moment
from zq.setting import DURATION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zq.spark.pipeline.progress import RunProgress

_lake = click.option(
    "--lake", required=True, metavar="DIR", help="The directory of the lake; a run makes it."
)
_master = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Spark's master: this machine, or a cluster.",
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
@_master
@click.option(
    "--target-wait",
    type=MILLISECONDS,
    default="10s",
    show_default=True,
    help="The wait below which 95 % of the attempts shall stay (workers_needed).",
)
@click.option("--streaming", is_flag=True, help="Go on until stopped, and take what comes.")
@click.option(
    "--every",
    type=MILLISECONDS,
    default="10s",
    show_default=True,
    help="How often --streaming looks for what is new.",
)
@click.option(
    "--allow-gaps",
    is_flag=True,
    help="Go on although a server has removed records before they were read.",
)
def run(
    origins: tuple[str, ...],
    lake: str,
    master: str,
    target_wait: int,
    streaming: bool,
    every: int,
    allow_gaps: bool,
) -> None:
    """Bring the lake up to date with exported segments and with servers that keep a history.

    A run reads only new records. It completes a run that was killed before it. One run at a time
    writes a lake. A server that is down waits for the next run. ZQ_TOKEN holds the secret of a key
    with the scope history.
    """
    with _spark(master) as (spark, progress):
        from zq.spark import pipeline as steps
        from zq.spark.pipeline.streaming import wait

        options = steps.PipelineOptions(target_ms=target_wait, allow_gaps=allow_gaps)
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
  zq pipeline report --lake /srv/lake --out report.html --stats http://127.0.0.1:7890

Times are UTC where they name no zone. A point of a chart stands for a minute, a few minutes, an
hour, six hours or a day: the shortest that fits the time shown.
"""
)
@_lake
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The HTML file.")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=14,
    show_default=True,
    help="How many days to show: the last days, or those before --to.",
)
@click.option(
    "--from",
    "since",
    type=Moment(),
    metavar="WHEN",
    help="Show the history from then on: 2026-01-31, 2026-01-31T18:00, or 90m for 90 minutes ago.",
)
@click.option(
    "--to",
    "until",
    type=Moment(),
    metavar="WHEN",
    help="Show the history before then. [default: its end]",
)
@click.option(
    "--stats",
    "servers",
    multiple=True,
    metavar="URL",
    help="Ask this server what waits there now, and show it. May be repeated.",
)
@click.option("--title", default="Job history", show_default=True, help="The page's title.")
@_master
def report(
    lake: str,
    out: Path,
    days: int,
    since: int | None,
    until: int | None,
    servers: tuple[str, ...],
    title: str,
    master: str,
) -> None:
    """Make a page about the lake: one HTML file that needs no other."""
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--from must be earlier than --to")
    with _spark(master) as (spark, progress):
        from zq.spark.pipeline import open_lake
        from zq.spark.report.figures import ReportRequest, gather
        from zq.spark.report.page import render
        from zq.spark.report.waiting import ask

        waiting = ask(servers, os.environ.get("ZQ_TOKEN") or None) if servers else None
        with progress.step("figures", spark.sparkContext):
            figures = gather(open_lake(spark, lake), ReportRequest(days, since, until))
        with progress.step("page", spark.sparkContext) as step:
            out.write_text(render(figures, title, waiting), encoding="utf-8")
            step.result = f"{out}, {out.stat().st_size // 1024} KiB"


@contextmanager
def _spark(master: str) -> "Iterator[tuple[SparkSession, RunProgress]]":
    """A session and the display of its progress. Errors for users end the command."""
    try:
        from pyspark.errors import PySparkRuntimeError

        from zq.spark.errors import PipelineError, SparkDown
        from zq.spark.pipeline.progress import RunProgress
        from zq.spark.session import builder, local_quiet, starting_quietly
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
        try:
            # A cluster takes long to start, and its messages are worth reading meanwhile.
            with starting_quietly() if master.startswith("local") else nullcontext():
                spark = made.getOrCreate()
        except PySparkRuntimeError as error:
            raise SparkDown from error
        try:
            yield (
                spark,
                RunProgress(
                    lambda text: say(text, err=True), say_over if sys.stderr.isatty() else None
                ),
            )
        finally:
            spark.stop()
    except PipelineError as error:
        raise click.ClickException(str(error)) from None
