"""`zq cancel`: one job that is not to run."""

import click

from zq.cli.output import job_document, print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import say
from zq.cli.words import NAME


@click.command(
    epilog="""\b
Examples:
  zq cancel 01JD0000000000000000000000
  zq cancel 01JD0000000000000000000000 --force   also while it runs: its worker is told

Ends with 0 where the job is cancelled now, with 1 where it runs, is finished or unknown, 2 for a
wrong word, 3 where no server answers.
"""
)
@click.argument("id", type=NAME)
@click.option("--force", is_flag=True, help="Also a job that runs; what it does is not undone.")
@talks
def cancel(remote: Remote, id: str, force: bool) -> None:
    """Cancel the job ID."""
    job = remote.run(remote.backend.cancel(id, force=force))
    if remote.as_json:
        print_json(job_document(job))
    else:
        say(f"{job.id} is {job.status}")
