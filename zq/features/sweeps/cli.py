"""`zq sweeps`: changes of many jobs, and taking a cancellation back."""

from typing import TYPE_CHECKING

import click
import msgspec

from zq.cli.drawing import Cells, tabled, watch
from zq.cli.many import spinning
from zq.cli.output import ago, cells_of, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.sections import Section
from zq.cli.terminal import counted, one_line, say
from zq.cli.words import NAME
from zq.features.sweeps.cli_cancel import cancel
from zq.features.sweeps.cli_choosing import REASON, YES, ask, tell_kept
from zq.features.sweeps.cli_delete import delete
from zq.features.sweeps.cli_requeue import requeue

if TYPE_CHECKING:
    from zq.features.sweeps.client import SweepDocument

COLUMNS = ("ID", "VERB", "STATE", "CHANGED", "OF", "UNDONE", "BEGAN", "WHO", "REASON", "FILTER")
LEAST = ("REASON", "WHO", "OF", "UNDONE", "BEGAN")
"""The columns that narrow terminals do without, the least important one first."""


@click.group(
    epilog="""\b
Examples:
  zq sweeps list
  zq sweeps stop 17
  zq sweeps undo 17
"""
)
def sweeps() -> None:
    """Show changes of many jobs, stop one, take a cancellation back."""


@sweeps.command(
    "list",
    epilog="""\b
Examples:
  zq sweeps list
  zq sweeps list --watch                     again every two seconds, until Ctrl-C
  zq sweeps list --limit 3 --json

Those that run come first, with their progress, then those that have changed jobs, the latest first.
OF is what was counted before. With --json, each is a line as in GET /sweeps. Exit codes: 0, 1 if
the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="Show at most this many that have ended.",
)
@click.option("--watch", "watching", is_flag=True, help="Show the table again and again.")
@tabled
@talks
def list_(remote: Remote, limit: int, watching: bool) -> None:
    """Show the changes of many jobs that run, and the last ones that have ended."""
    if remote.as_json:
        if watching:
            raise click.UsageError("give --watch or --json, not both")
        for each in _found(remote, limit):
            print_json(msgspec.to_builtins(each))
        return
    if watching:
        watch(lambda: _cells(remote, limit))
    print_table(COLUMNS, map(_row, _found(remote, limit)), least=LEAST)


@sweeps.command(
    epilog="""\b
Examples:
  zq sweeps stop 17

It stops before its next 1,000 jobs. What it has changed stays; see zq sweeps undo. Exit codes: 0, 1
if it does not run or the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("id", type=NAME)
@talks
def stop(remote: Remote, id: str) -> None:
    """Stop the running change ID."""
    remote.run(remote.backend.sweeps.stop(id))
    if remote.as_json:
        print_json({"id": id, "stopped": True})
    else:
        say(f"sweep {one_line(id)} stops")


@sweeps.command(
    epilog="""\b
Examples:
  zq sweeps undo 17
  zq sweeps undo 17 --yes --reason "it was the wrong queue"

The jobs that it has cancelled wait again in their old places, and no others. Those stay cancelled
whose unique key another job has, whose time to live is over, or whose budget is gone. Exit codes:
0, 1 if there is nothing to take back or the server refuses, 2 for wrong usage, 3 if no server
answers.
"""
)
@click.argument("id", type=NAME)
@REASON
@YES
@talks
def undo(remote: Remote, id: str, reason: str | None, yes: bool) -> None:
    """Take back the jobs that the change ID has cancelled."""
    if not yes:
        seen = remote.run(remote.backend.sweeps.get(id))
        if seen.left:
            many = f"{'' if seen.exact else 'over '}{seen.left:,} of {seen.changed:,} jobs"
            ask(f"This takes back {many} that sweep {id} has cancelled")
    with spinning("taking jobs back"):
        done = remote.run(remote.backend.sweeps.undo(id, reason=reason))
    if remote.as_json:
        print_json(msgspec.to_builtins(done))
        return
    say(f"{counted(done.undone, 'job')} brought back")
    tell_kept(done.kept, "stay cancelled")
    if done.gone:
        say(f"{done.gone:,} are no longer stored")


def _found(remote: Remote, limit: int) -> "list[SweepDocument]":
    running = remote.run(remote.backend.sweeps.running())
    return running + remote.run(remote.backend.sweeps.ended(limit))


def _cells(remote: Remote, limit: int) -> Cells:
    return cells_of(COLUMNS, map(_row, _found(remote, limit)), least=LEAST)


def _row(sweep: "SweepDocument") -> tuple[object, ...]:
    state = sweep.state if sweep.progress == 1 else f"{sweep.state} {sweep.progress:.0%}"
    known = (sweep.counted, sweep.undone or msgspec.UNSET)
    counted, undone = ["" if each is msgspec.UNSET else f"{each:,}" for each in known]
    named = " ".join(
        f"{name}={','.join(value) if isinstance(value, list) else value}"
        for name, value in sweep.by.items()
        if name != "upto"
    )
    return (
        *(sweep.id, sweep.verb, state, f"{sweep.changed:,}", counted, undone),
        *(ago(sweep.started_at), sweep.actor or "", short(sweep.reason), short(named)),
    )


COMMANDS = {Section.JOBS: (requeue, cancel, delete), Section.LOOK_BACK: (sweeps,)}
