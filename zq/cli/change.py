"""`zq change`: gives jobs another queue, priority or time."""

import time
from typing import Any

import click
from msgspec import UNSET

from zq.cli.filtering import CREATE, check_queue
from zq.cli.output import job_document
from zq.cli.remote import Remote, one_by_one, talks
from zq.cli.terminal import one_line
from zq.cli.words import MILLISECONDS, NAME, Moment


@click.command(
    short_help="Give unfinished jobs another queue, priority or time.",
    epilog="""\b
Examples:
  zq change 01JD0000000000000000000000 --queue mail-slow
  zq change 01JD0000000000000000000000 --priority 10
  zq change 01JD0000000000000000000000 --delay 1h   not before an hour from now
  zq change 01JD0000000000000000000000 --delay 0s   ready now
  zq change 01JD0000000000000000000000 --at 2030-01-31T18:00+01:00

What no option names stays as it is. Exit codes: 0, 1 if a job has finished, is unknown or cannot be
changed (the others are changed nevertheless), 2 for wrong usage, 3 if no server answers.
""",
)
@click.argument("ids", nargs=-1, required=True, type=NAME, metavar="ID…")
@click.option("--queue", type=NAME, help="Move the job to this queue.")
@click.option("--priority", type=click.IntRange(0, 65_535), help="Priority. 0 is the most urgent.")
@click.option("--delay", type=MILLISECONDS, help="Run it no earlier than this long from now.")
@click.option(
    "--at",
    type=Moment(past=False),
    metavar="WHEN",
    help="Run it no earlier than at this date and time, in UTC unless it names a zone.",
)
@CREATE
@talks
def change(remote: Remote, ids: tuple[str, ...], create: bool, **fields: Any) -> None:
    """Give jobs that have not finished another queue, priority or time."""
    from zq.model.names import check_name
    from zq.model.patching import Patch

    queue, priority, delay, at = (fields[name] for name in ("queue", "priority", "delay", "at"))
    if delay is not None and at is not None:
        raise click.UsageError("give --delay or --at, not both")
    if delay is not None:
        at = time.time_ns() // 1_000_000 + delay if delay else None
    elif at is None:
        at = UNSET
    patch = Patch(
        queue=UNSET if queue is None else check_name("queue", queue),
        priority=UNSET if priority is None else priority,
        ready_at=at,
    )
    if patch == Patch():
        raise click.UsageError("say what to change: --queue, --priority, --delay or --at")
    if queue is not None:
        check_queue(remote, queue, create=create)
    one_by_one(
        remote,
        ids,
        lambda id: remote.backend.operations.change(id, patch),
        lambda job: (
            f"{one_line(job.id)} is {job.status} in {one_line(job.queue)},"
            f" with the priority {job.priority}"
        ),
        "changed",
        job_document,
    )
