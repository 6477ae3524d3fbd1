"""`zq cancel`: cancels one job."""

import click

from zq.cli.output import job_document, print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import say
from zq.cli.words import NAME


@click.command(
    epilog="""\b
Examples:
  zq cancel 01JD0000000000000000000000
  zq cancel 01JD0000000000000000000000 --force   also while it runs: its worker is told to stop

Exit codes: 0 if the job is cancelled, 1 if it runs, has finished or is unknown, 2 for wrong usage,
3 if no server answers.
"""
)
@click.argument("id", type=NAME)
@click.option(
    "--force", is_flag=True, help="Also cancel a job that runs. What it has done is not undone."
)
@talks
def cancel(remote: Remote, id: str, force: bool) -> None:
    """Cancel the job ID."""
    job = remote.run(remote.backend.cancel(id, force=force))
    if remote.as_json:
        print_json(job_document(job))
    else:
        say(f"{job.id} is {job.status}")
