"""`zq delete`: deletes jobs, by their ids or by a filter."""

import click

from zq.cli.many import one_by_one, spinning
from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import counted, one_line, say
from zq.features.sweeps.cli_choosing import Choice, agreed, choosing


@click.command(
    short_help="Delete jobs for good.",
    epilog="""\b
Examples:
  zq delete 01JD0000000000000000000000
  zq delete --status dead --queue mail         it counts the jobs and asks first
  zq delete --queue mail --yes --reason test   also those that run

Jobs are deleted in any status, unless --status is given, with their errors and results. A deletion
cannot be taken back; zq cancel keeps the jobs. A deletion of many jobs leaves alone the jobs that
come after it was asked for. Exit codes: 0, 1 if a job is unknown (the others are deleted
nevertheless), if nothing was to be changed after all or the server refuses, 2 for wrong usage, 3 if
no server answers.
""",
)
@choosing
@talks
def delete(remote: Remote, choice: Choice) -> None:
    """Delete jobs for good: those with the given IDs, or all that match the options."""
    query = choice.query()
    if query is None:
        one_by_one(
            remote,
            choice.ids,
            lambda id: _deleted(remote, id),
            lambda id: f"{one_line(id)} is deleted",
            "deleted",
            lambda id: {"id": id, "deleted": True},
        )
        return
    bound = agreed(remote, "delete", query, "This deletes {} for good", yes=choice.yes)
    with spinning("deleting jobs"):
        count = remote.run(remote.backend.sweeps.delete(bound, reason=choice.reason))
    if remote.as_json:
        print_json({"deleted": count})
    else:
        say(f"{counted(count, 'job')} deleted")


async def _deleted(remote: Remote, id: str) -> str:
    await remote.backend.operations.delete(id)
    return id
