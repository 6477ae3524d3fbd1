"""`zq requeue`: dead jobs once more."""

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
  zq requeue --queue mail                    all that died in mail
  zq requeue --queue mail-dead --limit 100   also those that a dead-letter queue holds

They are ready at once, where they died, with all their attempts before them. Ends with 0, with 1
where a job is not dead or unknown (the others are brought back all the same) or the server refuses,
2 for a wrong word, 3 where no server answers.
"""
)
@click.argument("ids", nargs=-1, type=NAME, metavar="[ID]…")
@click.option("--queue", help="All of this queue.")
@click.option("--limit", type=click.IntRange(min=1), help="No more than so many of the queue.")
@talks
def requeue(remote: Remote, ids: tuple[str, ...], queue: str | None, limit: int | None) -> None:
    """Bring dead jobs back, by their IDs or of a queue."""
    if bool(ids) == (queue is not None):
        raise click.UsageError("name jobs by their ids, or a queue: --queue NAME")
    if limit is not None and queue is None:
        raise click.UsageError("--limit is for a --queue")
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
    with _spinning(f"bringing back what died in {one_line(queue)}"):
        count = remote.run(remote.backend.redrive(query, limit))
    if remote.as_json:
        print_json({"redriven": count})
    else:
        say(f"{count:,} jobs brought back")


@contextmanager
def _spinning(text: str) -> Iterator[None]:
    """Something moves on a terminal while the server works."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(text)):
        yield
