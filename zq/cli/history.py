"""`zq history`: take the history of jobs away, for devices that are seldom online."""

import json
import os
import sys
from pathlib import Path

import click

from zq.cli.moments import Moment
from zq.config import variable_given

DEFAULT_URL = "http://127.0.0.1:7890"
DEFAULT_RECORDS = 100_000


@click.group(
    epilog="""\b
Examples:
  zq history export --since 7d --out /media/usb/history
  zq history export --url https://edge-7.example.org --out history/edge-7

The server keeps a history where it was started with --history 7d.
"""
)
def history() -> None:
    """Export the history of jobs."""


@history.command(
    epilog="""\b
Examples:
  zq history export --out history
  zq history export --since 2026-01-31 --out history --json

Run again, it adds only what is new. The server is that of --url or ZQ_URL; where it has keys,
ZQ_TOKEN holds the secret of one with the scope history. Segments are gzip NDJSON, a record a
line; manifest.json lists them. They may be copied, also while an export runs, merged with those
of other devices, and read in any order.
"""
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Directory for segments and manifest; made where it is missing.",
)
@click.option(
    "--since",
    type=Moment(),
    metavar="WHEN",
    help="Where to begin in an empty directory: 7d, or a date. [default: all that is kept]",
)
@click.option("--url", help=f"The server. [ZQ_URL; default: {DEFAULT_URL}]")
@click.option(
    "--segment-records",
    type=click.IntRange(min=1),
    default=DEFAULT_RECORDS,
    show_default=True,
    help="Most records in a segment.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def export(
    out: Path, since: int | None, url: str | None, segment_records: int, as_json: bool
) -> None:
    """Write what is new of a server's history into a directory.

    Ends with 1 where the server or the directory cannot be used.
    """
    from zq.client.errors import ZqError
    from zq.client.export import Directory
    from zq.client.export import export as run
    from zq.client.history import HistoryReader

    reader = HistoryReader(url or _variable("ZQ_URL") or DEFAULT_URL, _variable("ZQ_TOKEN"))
    try:
        with Directory(out) as directory:
            done = run(
                reader,
                directory,
                since=since,
                most_records=segment_records,
                progress=_progress,
            )
    except (ZqError, OSError) as error:
        _clear()
        raise click.ClickException(str(error)) from None
    finally:
        reader.close()
    _clear()
    for first, last in done.lost:
        click.echo(
            f"records {first} to {last} had passed their retention before they were exported:"
            " export more often, or raise --history",
            err=True,
        )
    if not done.recording:
        click.echo("the server records nothing at present: start it with --history 7d", err=True)
    if as_json:
        files = [segment.file for segment in done.segments]
        click.echo(json.dumps({"records": done.records, "segments": files, "lost": done.lost}))
    else:
        click.echo(f"{done.records} new records in {len(done.segments)} segments")


def _variable(name: str) -> str | None:
    given = variable_given(name, os.environ)
    return given and given[1]


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{done:,} of {total:,} records", nl=False, err=True)


def _clear() -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
