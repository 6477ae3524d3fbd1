"""`zq backlog`: tells what could run now, and how many workers that needs."""

from typing import TYPE_CHECKING

import click
import msgspec

from zq.cli.filtering import warn_of_queues
from zq.cli.output import print_json
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import say
from zq.cli.words import NAME

if TYPE_CHECKING:
    from zq.features.backlog.client import BacklogDocument


@click.command(
    short_help="Tell how many workers a queue needs.",
    epilog="""\b
Examples:
  zq backlog mail
  zq backlog mail sums --target 20
  zq backlog mail --json

Jobs that could run now are ready, and no pause, group, budget, limit of a fair key or concurrency
of their queue holds them. Without --target, running times of the last hour say how many workers
have them gone in a minute. Several queues are added up, for workers that take from all of them.
With --json, the line is what GET /queues/QUEUE/backlog answers. Exit codes: 0, 1 if the server
refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.argument("queues", nargs=-1, required=True, type=NAME, metavar="QUEUE…")
@click.option("--target", type=click.IntRange(1), help="How many jobs a worker is to have.")
@talks
def backlog(remote: Remote, queues: tuple[str, ...], target: int | None) -> None:
    """Tell how many jobs of QUEUE could run now, and how many workers they need."""
    from zq.features.backlog.client import ServerBacklog

    found = remote.run(ServerBacklog(remote.backend.ask).of_queues(queues, target))
    if remote.as_json:
        print_json(msgspec.to_builtins(found))
        return
    say(_told(found))
    if not found.jobs and not found.held:
        warn_of_queues(remote, queues)


def _told(found: "BacklogDocument") -> str:
    text = f"{found.ready:,} could run now, {found.running:,} in flight"
    if found.held:
        gates = sorted(found.held.items(), key=lambda gate: -gate[1])
        text += f"; left out: {', '.join(f'{n:,} {name}' for name, n in gates)}"
    return f"{text}; workers needed: {found.workers:,}"


COMMANDS = {Section.QUEUES: (backlog,)}
