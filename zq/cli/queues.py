"""`zq queues`: shows what each queue holds, and how much goes through it."""

from typing import TYPE_CHECKING

import click
import msgspec

from zq.cli.drawing import tabled, watch
from zq.cli.near_queues import warn_of_queues
from zq.cli.output import cells_of, print_json, print_table, span
from zq.cli.remote import Remote, talks
from zq.cli.words import NAME

if TYPE_CHECKING:
    from zq.client.values import QueueStats

COLUMNS = (
    *("QUEUE", "READY", "SCHEDULED", "IN FLIGHT", "DEAD", "OLDEST READY"),
    *("TAKEN/S", "DONE/S", "FAILED/S", "DONE", "STATE"),
)
LEAST = ("DONE", "OLDEST READY", "FAILED/S", "TAKEN/S", "DONE/S", "SCHEDULED")
"""The columns that narrow terminals do without, the least important one first."""


@click.command(
    short_help="Show what waits, runs and fails in each queue, and its state.",
    epilog="""\b
Examples:
  zq queues
  zq queues mail sums
  zq queues --watch                          again every two seconds, until Ctrl-C
  zq queues --json

OLDEST READY is how long the oldest ready job has waited. Rates are those of the last minute. DONE
counts since the server started. STATE shows which queues are paused. With --json, each queue is a
line with all that GET /stats has, and `paused`. Exit codes: 0, 1 if the server refuses, 2 for wrong
usage, 3 if no server answers.
""",
)
@click.argument("names", nargs=-1, type=NAME, metavar="[QUEUE]…")
@click.option("--watch", "watching", is_flag=True, help="Show the table again and again.")
@tabled
@talks
def queues(remote: Remote, names: tuple[str, ...], watching: bool) -> None:
    """Show the queues that have jobs or are paused, or had traffic in the last five minutes."""
    if remote.as_json:
        if watching:
            raise click.UsageError("give --watch or --json, not both")
        for each, pause in _found(remote, names):
            print_json(msgspec.to_builtins(each) | {"paused": bool(pause)})
        return
    if watching:
        watch(
            lambda: cells_of(COLUMNS, (_row(*each) for each in _found(remote, names)), least=LEAST)
        )
    found = _found(remote, names)
    print_table(COLUMNS, (_row(*each) for each in found), least=LEAST)
    warn_of_queues(remote, set(names) - {each.queue for each, _ in found})


def _found(remote: Remote, names: tuple[str, ...]) -> "list[tuple[QueueStats, str]]":
    """The queues, and what there is to say of their pauses."""
    from zq.model.waits import pause_text

    def state(queue: str) -> str:
        settings = remote.run(remote.backend.settings(queue))
        return pause_text(settings) if settings.paused else ""

    return [
        (each, state(each.queue))
        for each in remote.run(remote.backend.stats())
        if not names or each.queue in names
    ]


def _row(stats: "QueueStats", pause: str) -> tuple[object, ...]:
    counts = stats.counts
    age = stats.oldest_ready_age_ms
    return (
        *(stats.queue, counts["ready"], counts["scheduled"], counts["in_flight"], counts["dead"]),
        "" if age is None else span(age),
        *(stats.deliveries.per_second_1m, stats.completions.per_second_1m),
        *(stats.failures.per_second_1m, stats.completions.total),
        pause,
    )
