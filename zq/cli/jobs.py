"""`zq jobs`: lists jobs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from zq.cli.drawing import tabled, watch
from zq.cli.filtering import FilterWords, filtering, warn_of_queues
from zq.cli.output import ago, cells_of, job_document, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.terminal import say

if TYPE_CHECKING:
    from zq.client.values import JobQuery, StoredJob

PAGE = 1000
DEFAULT_LIMIT = 50
COLUMNS = ("ID", "QUEUE", "TYPE", "STATUS", "FAILED", "CREATED", "DUE", "PAYLOAD")
LEAST = ("FAILED", "DUE", "PAYLOAD", "TYPE", "CREATED")
"""The columns that narrow terminals do without, the least important one first."""

LIMIT = click.IntRange(min=1)


@click.command(
    epilog="""\b
Examples:
  zq jobs                                    the fifty oldest
  zq jobs --newest --limit 10
  zq jobs --newest --watch                   again every two seconds, until Ctrl-C
  zq jobs --queue mail --status ready,scheduled
  zq jobs --filter '.to == "ann"'            by payload, in jq
  zq jobs --group ann --attempts 1.. --ready-before 1h
  zq jobs --limit 1000000 --json >jobs.ndjson

The oldest jobs come first, unless --newest is given. With --json, each job is a line. On a narrow
terminal, some columns are left out. Exit codes: 0, 1 if the server refuses,
2 for wrong usage, 3 if no server answers.
"""
)
@filtering
@click.option(
    "--limit",
    type=LIMIT,
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Show at most this many jobs.",
)
@click.option("--newest", is_flag=True, help="Show the newest jobs first.")
@click.option("--watch", "watching", is_flag=True, help="Show the list again and again.")
@tabled
@talks
def jobs(
    remote: Remote,
    words: FilterWords,
    limit: int,
    newest: bool,
    watching: bool,
) -> None:
    """List jobs."""
    query = words.query()
    if remote.as_json:
        if watching:
            raise click.UsageError("give --watch or --json, not both")
        for job in found(remote, query, limit, newest=newest):
            print_json(job_document(job))
        return
    if watching:
        watch(
            lambda: cells_of(
                COLUMNS, map(_row, found(remote, query, limit, newest=newest)), least=LEAST
            )
        )
    shown = list(map(_row, found(remote, query, limit, newest=newest)))
    print_table(COLUMNS, shown, least=LEAST)
    if not shown:
        warn_of_queues(remote, words.queue)
    tell_of_more(remote, query, len(shown), limit)


def found(
    remote: Remote, query: "JobQuery", limit: int, *, newest: bool = False
) -> Iterator["StoredJob"]:
    """Jobs that match, page by page."""
    after = None
    while limit > 0:
        size = min(limit, PAGE)
        page = remote.run(remote.backend.jobs(query, after=after, limit=size, newest=newest))
        yield from page.jobs
        limit -= len(page.jobs)
        after = page.after
        if after is None:
            return


def tell_of_more(remote: Remote, query: "JobQuery", shown: int, limit: int) -> None:
    """Say on stderr how many jobs are not shown."""
    if shown >= limit:
        count = remote.run(remote.backend.count(query))
        tell_the_rest(count - shown, count)


def tell_the_rest(more: int, all: int) -> None:
    """Say on stderr that there are more jobs than are shown."""
    if more > 0:
        say(f"{more:,} more: --limit {all} shows all", err=True)


def _row(job: "StoredJob") -> tuple[object, ...]:
    due = ago(job.ready_at) if job.status == "scheduled" else ""
    return (
        *(job.id, job.queue, job.type, job.status, job.attempts),
        *(ago(job.created_at), due, short(job.payload)),
    )
