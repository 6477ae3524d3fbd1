"""`zq queues`: shows what each queue holds, and how much goes through it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from zq.cli.drawing import tabled, watch
from zq.cli.filtering import warn_of_queues
from zq.cli.output import cells_of, print_json, print_table, span
from zq.cli.remote import Remote, talks
from zq.cli.words import NAME

if TYPE_CHECKING:
    from zq.client.values import QueueStats

COLUMNS = (
    *("QUEUE", "READY", "SCHEDULED", "IN FLIGHT", "DEAD", "OLDEST READY"),
    *("TAKEN/S", "DONE/S", "FAILED/S", "WORKERS", "STATE"),
)
LEAST = ("WORKERS", "OLDEST READY", "FAILED/S", "TAKEN/S", "DONE/S", "SCHEDULED")
"""The columns that narrow terminals do without, the least important one first."""

STATES = ("no_worker", "failing", "growing", "stuck", "budget", "old", "paused", "")
"""The words for faults of a queue, the worst first."""

SORTS: "dict[str, Callable[[QueueStats], Any]]" = {
    "worst": lambda queue: (_rank(queue), -queue.counts["ready"]),
    "waiting": lambda queue: -queue.counts["ready"],
    "oldest": lambda queue: -(queue.oldest_ready_age_ms or 0),
    "failing": lambda queue: -queue.failures.per_second_5m,
    "dead": lambda queue: -queue.counts["dead"],
    "name": lambda queue: queue.queue,
}


@click.command(
    short_help="Show what waits, runs and fails in each queue, and its state.",
    epilog="""\b
Examples:
  zq queues
  zq queues mail sums
  zq queues --sort dead
  zq queues --watch                          again every two seconds, until Ctrl-C
  zq queues --json

OLDEST READY is how long the oldest ready job has waited. Rates are those of the last minute. STATE
says what is wrong: no worker (for a minute), failing, growing, stuck, budget (jobs wait for one),
old, paused. With --json, each queue is a line with all that GET /stats has. Exit codes: 0, 1 if the
server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
@click.argument("names", nargs=-1, type=NAME, metavar="[QUEUE]…")
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="worst",
    show_default=True,
    help="What comes first; queues that are alike come by name.",
)
@click.option("--watch", "watching", is_flag=True, help="Show the table again and again.")
@tabled
@talks
def queues(remote: Remote, names: tuple[str, ...], sort: str, watching: bool) -> None:
    """Show the queues that have jobs or are paused, or had traffic in the last five minutes."""
    if remote.as_json:
        if watching:
            raise click.UsageError("give --watch or --json, not both")
        for each in _found(remote, names, sort):
            print_json(each)
        return
    if watching:
        watch(lambda: cells_of(COLUMNS, map(_row, _found(remote, names, sort)), least=LEAST))
    found = _found(remote, names, sort)
    print_table(COLUMNS, map(_row, found), least=LEAST)
    warn_of_queues(remote, set(names) - {each.queue for each in found})


def _found(remote: Remote, names: tuple[str, ...], sort: str) -> "list[QueueStats]":
    every = remote.run(remote.backend.stats())
    chosen = [each for each in every if not names or each.queue in names]
    return sorted(chosen, key=lambda queue: (SORTS[sort](queue), queue.queue))


def _rank(queue: "QueueStats") -> int:
    """The place of a queue's state. A newer server may have others, which come before none."""
    return STATES.index(queue.state) if queue.state in STATES else len(STATES) - 2


def _row(stats: "QueueStats") -> tuple[object, ...]:
    counts = stats.counts
    age = stats.oldest_ready_age_ms
    return (
        *(stats.queue, counts["ready"], counts["scheduled"], counts["in_flight"], counts["dead"]),
        "" if age is None else span(age),
        *(stats.deliveries.per_second_1m, stats.completions.per_second_1m),
        *(stats.failures.per_second_1m, stats.workers),
        _state(stats),
    )


def _state(stats: "QueueStats") -> str:
    word, more = stats.state.replace("_", " "), stats.state_text
    state = f"{word}{' ' if more.startswith('(') else ': '}{more}" if more else word
    return f"{state}, paused" if stats.paused and stats.state != "paused" else state
