"""`zq status`: shows one job."""

from typing import TYPE_CHECKING

import click
import msgspec

from zq.cli.output import job_document, moment, print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import one_line, say
from zq.cli.words import NAME

if TYPE_CHECKING:
    from zq.client.job_error import JobError
    from zq.features.waits.model import WaitReason

TIMES = (
    *("created_at", "ready_at", "dequeued_at", "lease_until", "failed_at", "completed_at"),
    *("cancelled_at", "purge_at"),
)
UNFINISHED = ("scheduled", "ready", "in_flight")


@click.command(
    short_help="Show one job, why it does not run, and its last failures.",
    epilog="""\b
Examples:
  zq status 01JD0000000000000000000000
  zq status 01JD0000000000000000000000 --json

Exit codes: 0 if the job exists, whatever its status, 1 if it does not exist or the server refuses,
2 for wrong usage, 3 if no server answers.
""",
)
@click.argument("id", type=NAME)
@talks
def status(remote: Remote, id: str) -> None:
    """Show the job ID: its fields, why it does not run, and its last failures.

    The traceback of the latest failure comes last. `zq health` shows the server, and `zq queues`
    its queues.
    """
    job = remote.run(remote.backend.get(id))
    errors = remote.run(remote.backend.errors(id)) if job.failed_at is not None else []
    reasons = _reasons(remote, id) if job.status in UNFINISHED else []
    if remote.as_json:
        print_json(job_document(job) | {"errors": errors, "why": reasons})
        return
    document = job_document(job)
    width = max(map(len, document))
    for name, value in document.items():
        if value or name in ("payload", "result", "priority", "attempts"):
            say(f"{name.ljust(width)}  {_shown(name, value)}")
    for reason in reasons:
        say(f"{'why'.ljust(width)}  {one_line(reason.text)}")
    for error in errors:
        by = f" (by {one_line(error.worker)})" if error.worker else ""
        say(f"{f'failure {error.attempt}'.ljust(width)}  {failure_text(error)}{by}")
        if error.details is not None:
            say(f"{'details'.ljust(width)}  {_shown('details', error.details)}")
    if errors:
        for line in errors[-1].traceback.splitlines():
            say(f"  {line}")


def _reasons(remote: Remote, id: str) -> "list[WaitReason]":
    """Why the job does not run. Other servers than ours do not tell, and it may be gone by now."""
    from zq.client.errors import BackendError, JobNotFound

    try:
        return remote.run(remote.backend.why(id))
    except (BackendError, JobNotFound) as error:
        if isinstance(error, BackendError) and error.status != 404:
            raise
        return []


def _shown(name: str, value: object) -> str:
    if name in TIMES and isinstance(value, int):
        return moment(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if name in ("payload", "result"):
        text = msgspec.json.encode(value).decode()
    return one_line(text)


def failure_text(error: "JobError") -> str:
    """The failure in one line, without its backtrace."""
    kind = f"{error.error_type}: " if error.error_type else ""
    return one_line(f"{kind}{error.message}")
