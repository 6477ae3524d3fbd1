"""`zq history`: exports the history of jobs, for devices that are seldom online."""

from pathlib import Path

import click

from zq.cli.output import print_json
from zq.cli.remote import ServerAddress, addressed, explained, tell_server
from zq.cli.rooms import Section
from zq.cli.terminal import counted, one_line, say, say_over
from zq.cli.words import Moment

DEFAULT_RECORDS = 100_000


@click.group(
    epilog="""\b
Examples:
  zq history export --since 7d --out /media/usb/history
  zq history export --url https://edge-7.example.org --out history/edge-7

A server keeps a history if it was started with --history, for example --history 7d.
"""
)
def history() -> None:
    """Export the history of jobs."""


@history.command(
    epilog="""\b
Examples:
  zq history export --out history
  zq history export --since 2026-01-31 --out history --json

A second run adds only what is new. --url or ZQ_URL names the server. If the server has access keys,
ZQ_TOKEN must hold the secret of a key with the scope history. Segments are gzip NDJSON with a
record on each line; manifest.json lists them. You can copy them while an export runs, merge them
with those of other devices, and read them in any order.
"""
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Directory for segments and manifest. It is made if it is missing.",
)
@click.option(
    "--since",
    type=Moment(),
    metavar="WHEN",
    help="Where to begin in an empty directory: 7d, or a date. [default: the oldest record]",
)
@click.option(
    "--segment-records",
    type=click.IntRange(min=1),
    default=DEFAULT_RECORDS,
    show_default=True,
    help="Write at most this many records into a segment.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@addressed
def export(
    out: Path, since: int | None, segment_records: int, as_json: bool, server: ServerAddress
) -> None:
    """Write the new records of a server's history into a directory.

    The exit code is 1 if the server or the directory cannot be used.
    """
    from zq.client.errors import ZqError
    from zq.features.history.client import Directory, HistoryReader
    from zq.features.history.client import export as run

    with explained():
        reader = HistoryReader(server.named, server.token, tls=server.tls)
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
        say_over("")
        raise click.ClickException(one_line(str(error))) from None
    finally:
        reader.close()
    say_over("")
    for first, last in done.lost:
        say(
            f"the retention of records {first} to {last} ended before they were exported:"
            " export more often, or raise --history",
            err=True,
        )
    if not done.recording:
        say("the server records no history: start it with --history 7d", err=True)
    if as_json:
        files = [segment.file for segment in done.segments]
        print_json({"records": done.records, "segments": files, "lost": done.lost})
    else:
        tell_server(server.named)
        records = counted(done.records, "new record")
        say(f"{records} in {counted(len(done.segments), 'segment')}")


def _progress(done: int, total: int) -> None:
    say_over(f"{done:,} of {total:,} records")


COMMANDS = {Section.LOOK_BACK: (history,)}
