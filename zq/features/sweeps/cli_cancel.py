"""`zq cancel`: cancels jobs, by their ids or by a filter."""

import click

from zq.cli.many import one_by_one, spinning
from zq.cli.output import job_document, print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import counted, one_line, say
from zq.features.sweeps.cli_choosing import Choice, agreed, choosing


def _way_back(sweep: str | None) -> str:
    return f"; zq sweeps undo {one_line(sweep)} takes it back" if sweep else ""


@click.command(
    short_help="Cancel jobs, by their ids or by what they have in common.",
    epilog="""\b
Examples:
  zq cancel 01JD0000000000000000000000
  zq cancel 01JD0000000000000000000000 --force   also while it runs: its worker is told to stop
  zq cancel --queue mail --type letter           all that wait; it counts them and asks first
  zq cancel --queue mail --yes --reason "wrong list"

A cancellation of many jobs leaves alone the jobs that come after it was asked for. Any
cancellation can be taken back: see zq sweeps undo. Exit codes: 0 if the jobs are cancelled, 1 if
one runs, has finished or is unknown, or if nothing was to be changed after all, 2 for wrong usage,
3 if no server answers.
""",
)
@click.option(
    "--force", is_flag=True, help="Also cancel jobs that run. What they have done is not undone."
)
@choosing
@talks
def cancel(remote: Remote, choice: Choice, force: bool) -> None:
    """Cancel jobs: those with the given IDs, or all that match the options."""
    query = choice.query()
    if query is None:
        one_by_one(
            remote,
            choice.ids,
            lambda id: remote.backend.cancel(id, force=force, undo=True),
            lambda job: f"{one_line(job.id)} is {job.status}{_way_back(job.undo)}",
            "cancelled",
            job_document,
        )
        return
    bound = agreed(remote, "cancel", query, "This cancels {}", yes=choice.yes, force=force)
    with spinning("cancelling jobs"):
        verb = remote.backend.sweeps.cancel(bound, force=force, reason=choice.reason)
        count = remote.run(verb)
    if remote.as_json:
        print_json({"cancelled": count})
    else:
        say(f"{counted(count, 'job')} cancelled")
