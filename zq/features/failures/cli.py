"""`zq failures`: why attempts fail, by cause."""

from typing import TYPE_CHECKING

import click

from zq.cli.drawing import tabled
from zq.cli.filtering import warn_of_queues
from zq.cli.output import ago, print_json, print_table
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import counted, one_line, say
from zq.cli.words import NAMES

if TYPE_CHECKING:
    from zq.features.failures.client import CauseDocument

COLUMNS = ("ID", "COUNT", "CHANGE", "DEAD", "LATEST", "QUEUES", "CAUSE")
LEAST = ("LATEST", "QUEUES")
"""The columns that narrow terminals do without, the least important one first."""

RANGES = ("5m", "15m", "1h", "24h", "7d")
ORDERS = ("count", "queue", "time")


@click.command(
    epilog="""\b
Examples:
  zq failures                                of the last hour, the most frequent cause first
  zq failures --range 5m --order time
  zq failures --queue mail --json
  zq dead --cause 1-1f435422335e9cab         the jobs that died of a cause
  zq requeue --error 1-1f435422335e9cab      make them ready again

COUNT is how often a cause has come in the range. CHANGE compares that with as long a time before:
new, or so many times as often. DEAD is how many jobs are dead of it now. Causes have no ids, quoted
texts, paths and numbers. With --json, each cause is a line as in GET /failures. Exit codes: 0, 1 if
the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.option(
    "--queue", type=NAMES, default=(), help="Show only causes in these queues (use commas)."
)
@click.option(
    "--range",
    "length",
    type=click.Choice(RANGES),
    default="1h",
    show_default=True,
    help="Look back so far.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="count",
    show_default=True,
    help="Show the most frequent, by queue, or the latest first.",
)
@tabled
@talks
def failures(remote: Remote, queue: tuple[str, ...], length: str, order: str) -> None:
    """Show why attempts fail, by cause."""
    from zq.features.failures.client import ServerFailures

    found = remote.run(ServerFailures(remote.backend.ask).causes(queue, length, order))
    if remote.as_json:
        for cause in found.causes:
            print_json(cause)
        return
    print_table(COLUMNS, map(_row, found.causes), least=LEAST)
    if not found.causes:
        warn_of_queues(remote, queue)
    more = found.known - len(found.causes)
    told = f", {more:,} more causes" if more else ""
    failed = f"{counted(found.failed, 'failure')} in {length}, {found.failed_before:,} before"
    say(f"{failed}{told}", err=True)


def _row(cause: "CauseDocument") -> tuple[object, ...]:
    first, *others = cause.queues
    queues = f"{first} +{len(others)}" if others else first
    kind = f"{cause.error_type}: " if cause.error_type else ""
    dead = f"{cause.dead:,}+" if cause.more_dead else cause.dead
    change = "new" if cause.is_new else f"x{cause.times:.1f}" if cause.times else ""
    text = one_line(f"{kind}{cause.message}")
    return cause.id, cause.count, change, dead, ago(cause.latest), queues, text


COMMANDS = {Section.LOOK: (failures,)}
