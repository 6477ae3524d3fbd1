"""`zq requeue`: makes dead jobs ready again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from zq.cli.output import job_document, print_json
from zq.cli.remote import Refused, Remote, hint, is_absent, talks
from zq.cli.terminal import one_line, say
from zq.cli.words import NAME


@click.command(
    epilog="""\b
Examples:
  zq requeue 01JD0000000000000000000000
  zq requeue --queue mail                    all jobs that died in mail
  zq requeue --queue mail-dead --limit 100   also jobs that a dead-letter queue holds

Jobs are ready at once, in the queue where they died, and may be tried as often as new ones. Exit
codes: 0, 1 if a job is not dead or unknown (the others are brought back nevertheless) or the server
refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("ids", nargs=-1, type=NAME, metavar="[ID]…")
@click.option("--queue", help="Bring back all dead jobs of this queue.")
@click.option(
    "--limit", type=click.IntRange(min=1), help="Bring back at most this many jobs of the queue."
)
@talks
def requeue(remote: Remote, ids: tuple[str, ...], queue: str | None, limit: int | None) -> None:
    """Make dead jobs ready again: those with the given IDs, or those of a queue."""
    if bool(ids) == (queue is not None):
        raise click.UsageError("name either jobs by their ids, or a queue with --queue NAME")
    if limit is not None and queue is None:
        raise click.UsageError("--limit needs --queue")
    if queue is not None:
        _redrive(remote, queue, limit)
    else:
        _retry(remote, ids)


def _retry(remote: Remote, ids: tuple[str, ...]) -> None:
    from zq.client.errors import ZqError

    refused = 0
    for id in ids:
        try:
            job = remote.run(remote.backend.retry(id))
        except ZqError as error:
            if is_absent(error):
                raise
            refused += 1
            say(one_line(f"{id}: {error.message}{hint(error)}"), err=True)
            continue
        if remote.as_json:
            print_json(job_document(job))
        else:
            say(f"{job.id} is {job.status} in {one_line(job.queue)}")
    if refused:
        raise Refused(f"{refused} of {len(ids)} jobs were not brought back")


def _redrive(remote: Remote, queue: str, limit: int | None) -> None:
    from zq.client.values import JobQuery
    from zq.model.names import check_name

    query = JobQuery(queues=(check_name("queue", queue),))
    with _spinning(f"bringing back the dead jobs of {one_line(queue)}"):
        count = remote.run(remote.backend.redrive(query, limit))
    if remote.as_json:
        print_json({"redriven": count})
    else:
        say(f"{count:,} jobs brought back")


@contextmanager
def _spinning(text: str) -> Iterator[None]:
    """Show a spinner on a terminal while the server works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield
