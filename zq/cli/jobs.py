"""`zq jobs`: lists jobs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from zq.cli.output import ago, job_document, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.terminal import say
from zq.cli.words import NAMES, Names
from zq.model.lifecycle import BY_NAME

if TYPE_CHECKING:
    from zq.client.values import JobQuery, StoredJob

PAGE = 1000
DEFAULT_LIMIT = 50
STATUSES = Names(tuple(BY_NAME))
LIMIT = click.IntRange(min=1)


@click.command(
    epilog="""\b
Examples:
  zq jobs                                    the fifty oldest
  zq jobs --queue mail --status ready,scheduled
  zq jobs --filter '.to == "ann"'            by payload, in jq
  zq jobs --limit 1000000 --json >jobs.ndjson

The oldest jobs come first. With --json, each job is a line. Exit codes: 0, 1 if the server refuses,
2 for wrong usage, 3 if no server answers.
"""
)
@click.option(
    "--queue", type=NAMES, default=(), help="Show only jobs of these queues (separate with commas)."
)
@click.option("--status", type=STATUSES, default=(), help="Show only jobs with these statuses.")
@click.option("--type", "type_", type=NAMES, default=(), help="Show only jobs of these types.")
@click.option(
    "--filter", "program", metavar="JQ", help="Show only jobs whose payload makes this true."
)
@click.option("--budget", type=NAMES, default=(), help="Show only jobs that draw from these.")
@click.option(
    "--error",
    type=NAMES,
    default=(),
    metavar="SIGNATURE",
    help="Show only jobs whose latest failure has this cause; see GET /error-groups.",
)
@click.option(
    "--limit",
    type=LIMIT,
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Show at most this many jobs.",
)
@talks
def jobs(
    remote: Remote,
    queue: tuple[str, ...],
    status: tuple[Any, ...],
    type_: tuple[str, ...],
    program: str | None,
    budget: tuple[str, ...],
    error: tuple[str, ...],
    limit: int,
) -> None:
    """List jobs."""
    from zq.client.values import JobQuery

    query = JobQuery(status, queue, type_, (), program, budget, error)
    if remote.as_json:
        for job in found(remote, query, limit):
            print_json(job_document(job))
        return
    columns = ("ID", "QUEUE", "TYPE", "STATUS", "FAILED", "CREATED", "DUE", "PAYLOAD")
    shown = list(map(_row, found(remote, query, limit)))
    print_table(columns, shown)
    tell_of_more(remote, query, len(shown), limit)


def found(remote: Remote, query: "JobQuery", limit: int) -> Iterator["StoredJob"]:
    """Jobs that match, page by page."""
    after = None
    while limit > 0:
        page = remote.run(remote.backend.jobs(query, after=after, limit=min(limit, PAGE)))
        yield from page.jobs
        limit -= len(page.jobs)
        after = page.after
        if after is None:
            return


def tell_of_more(remote: Remote, query: "JobQuery", shown: int, limit: int) -> None:
    """Say on stderr how many jobs are not shown."""
    if shown < limit:
        return
    more = remote.run(remote.backend.count(query)) - shown
    if more > 0:
        say(f"{more:,} more: --limit {shown + more} shows all", err=True)


def _row(job: "StoredJob") -> tuple[object, ...]:
    due = ago(job.ready_at) if job.status == "scheduled" else ""
    return (
        *(job.id, job.queue, job.type, job.status, job.attempts),
        *(ago(job.created_at), due, short(job.payload)),
    )
