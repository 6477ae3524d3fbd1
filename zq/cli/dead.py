"""`zq dead`: lists dead jobs, and why they died."""

from typing import TYPE_CHECKING

import click

from zq.cli.jobs import DEFAULT_LIMIT, LIMIT, found, tell_of_more
from zq.cli.near_queues import warn_of_queues
from zq.cli.output import ago, job_document, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.status import failure_text
from zq.cli.words import NAMES
from zq.model.job import Reason
from zq.model.leasing import stall_words

if TYPE_CHECKING:
    from zq.client.job_error import JobError
from zq.client.values import StoredJob


@click.command(
    epilog="""\b
Examples:
  zq dead
  zq dead --queue mail --json
  zq requeue --queue mail                    make all of them ready again

With --json, each job is a line with its last failure as `error`. Exit codes: 0 also if no job is
dead, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.option(
    "--queue", type=NAMES, default=(), help="Show only jobs of these queues (separate with commas)."
)
@click.option(
    "--limit",
    type=LIMIT,
    default=DEFAULT_LIMIT,
    show_default=True,
    help="Show at most this many jobs.",
)
@talks
def dead(remote: Remote, queue: tuple[str, ...], limit: int) -> None:
    """List dead jobs with their last failure."""
    from zq.client.values import JobQuery

    query = JobQuery(("dead",), queue)
    jobs = ((job, _last_error(remote, job)) for job in found(remote, query, limit))
    if remote.as_json:
        for job, error in jobs:
            print_json(job_document(job) | {"error": error})
        return
    rows = [_row(job, error) for job, error in jobs]
    print_table(
        ("ID", "QUEUE", "TYPE", "FAILED", "DIED", "REASON", "ERROR"),
        rows,
        least=("REASON", "FAILED", "TYPE", "DIED"),
    )
    if not rows:
        warn_of_queues(remote, queue)
    tell_of_more(remote, query, len(rows), limit)


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
