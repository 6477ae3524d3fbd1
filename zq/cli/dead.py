"""`zq dead`: lists dead jobs, and why they died."""

import sys
from typing import TYPE_CHECKING

import click

from zq.cli.drawing import tabled
from zq.cli.filtering import warn_of_queues
from zq.cli.jobs import DEFAULT_LIMIT, LIMIT, found, tell_of_more, tell_the_rest
from zq.cli.output import ago, job_document, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.status import failure_text
from zq.cli.words import NAMES, Moment
from zq.model.filters import ValueRange
from zq.model.job import Reason
from zq.model.leasing import stall_words

if TYPE_CHECKING:
    from zq.client.job_error import JobError
    from zq.client.values import StoredJob


@click.command(
    epilog="""\b
Examples:
  zq dead
  zq dead --since 1h                         those that died in the last hour, the latest first
  zq dead --newest --limit 10
  zq dead --cause 1-1f435422335e9cab         of one cause; zq failures lists the causes
  zq dead --queue mail --json
  zq requeue --queue mail                    make all of them ready again

The jobs that were stored first come first, unless --newest or --since is given. With --json, each
job is a line with its last failure as `error`. Exit codes: 0 also if no job is dead, 1 if the
server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.option(
    "--queue", type=NAMES, default=(), help="Show only jobs of these queues (separate with commas)."
)
@click.option(
    "--cause",
    type=NAMES,
    default=(),
    metavar="SIGNATURE",
    help="Show only jobs whose last failure has this cause; see zq failures.",
)
@click.option(
    "--since",
    type=Moment(),
    metavar="WHEN",
    help="Show only jobs that died since then, the latest first: so long ago, as in 1h, or a date.",
)
@click.option("--newest", is_flag=True, help="Show the jobs that were stored last first.")
@click.option(
    "--limit",
    type=LIMIT,
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Show at most this many jobs.",
)
@tabled
@talks
def dead(
    remote: Remote,
    queue: tuple[str, ...],
    cause: tuple[str, ...],
    since: int | None,
    newest: bool,
    limit: int,
) -> None:
    """List dead jobs with their last failure."""
    from zq.client.values import JobQuery

    lately_only = None if since is None else ValueRange(since)
    query = JobQuery(("dead",), queue, errors=cause, finished_at=lately_only)
    if since is None:
        chosen = list(found(remote, query, limit, newest=newest))
    else:
        lately = sorted(found(remote, query, sys.maxsize), key=_died_at, reverse=True)
        chosen = lately[:limit]
    jobs = ((job, _last_error(remote, job)) for job in chosen)
    if remote.as_json:
        for job, error in jobs:
            print_json(job_document(job) | {"error": error})
        return
    print_table(
        ("ID", "QUEUE", "TYPE", "FAILED", "DIED", "REASON", "ERROR"),
        (_row(job, error) for job, error in jobs),
        least=("REASON", "FAILED", "TYPE", "DIED"),
    )
    if not chosen:
        warn_of_queues(remote, queue)
    if since is None:
        tell_of_more(remote, query, len(chosen), limit)
    else:
        tell_the_rest(len(lately) - len(chosen), len(lately))


def _died_at(job: "StoredJob") -> int:
    return job.failed_at or 0


def _last_error(remote: Remote, job: "StoredJob") -> "JobError | None":
    from zq.client.errors import JobNotFound

    try:
        errors = remote.run(remote.backend.errors(job.id))
    except JobNotFound:  # its retention has just ended
        return None
    return errors[-1] if errors else None


def _row(job: "StoredJob", error: "JobError | None") -> tuple[object, ...]:
    said = "" if error is None else short(failure_text(error))
    if job.reason == Reason.STALLED:
        said = stall_words(job.stalls or 0)
    died = ago(job.failed_at)
    return (job.id, job.queue, job.type, job.attempts, died, job.reason or "", said)
