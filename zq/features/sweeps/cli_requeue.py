"""`zq requeue`: makes dead jobs ready again."""

import click
import msgspec

from zq.cli.many import one_by_one, spinning
from zq.cli.output import job_document, print_json
from zq.cli.remote import Remote, talks
from zq.cli.terminal import counted, one_line, say
from zq.features.sweeps.cli_choosing import Choice, agreed, choosing, tell_kept


@click.command(
    short_help="Make dead jobs ready again.",
    epilog="""\b
Examples:
  zq requeue 01JD0000000000000000000000
  zq requeue --queue mail                    all jobs that died in mail; it counts and asks first
  zq requeue --error 1-9f2c --yes            all that died of this cause
  zq requeue --queue mail-dead --limit 100   also jobs that a dead-letter queue holds

Jobs are ready at once, in the queue where they died, and may be tried as often as new ones. Jobs
that die after it was asked are left alone if they are new. It says why others stay. Exit codes: 0,
1 if a job is not dead or unknown (the others are requeued nevertheless), if nothing was to be
changed after all or the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.option(
    "--limit", type=click.IntRange(min=1), help="Requeue at most this many jobs of the queue."
)
@choosing
@talks
def requeue(remote: Remote, choice: Choice, limit: int | None) -> None:
    """Make dead jobs ready again: those with the given IDs, or all that match the options."""
    query = choice.query()
    if query is None:
        if limit is not None:
            raise click.UsageError("--limit needs an option such as --queue")
        one_by_one(
            remote,
            choice.ids,
            remote.backend.requeue,
            lambda job: f"{one_line(job.id)} is {job.status} in {one_line(job.queue)}",
            "requeued",
            job_document,
        )
        return
    bound = agreed(remote, "requeue", query, "This requeues {}", yes=choice.yes, most=limit)
    with spinning("requeuing dead jobs"):
        done = remote.run(remote.backend.sweeps.requeue(bound, limit, reason=choice.reason))
    if remote.as_json:
        print_json(msgspec.to_builtins(done))
        return
    say(f"{counted(done.requeued, 'job')} requeued")
    tell_kept(done.kept, "stay as they are")
