"""`zq fair`: shows the fair keys of a queue, and changes their weights and limits."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.output import ago, print_json, print_table
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import one_line, say
from zq.cli.words import NAME
from zq.features.fair.model import MAX_WEIGHT, MIN_WEIGHT, FairOrder
from zq.model.job import MAX_UINT32
from zq.model.settings import MAX_RATE

if TYPE_CHECKING:
    from zq.features.fair.client import FairKeyDocument, FairLimit, ServerFairKeys

COLUMNS = ("KEY", "SHARE", "BEHIND", "WAITING", "IN FLIGHT", "MEAN", "OLDEST", "SET")
LEAST = ("MEAN", "SET", "OLDEST", "BEHIND")
"""The columns that narrow terminals do without, the least important one first."""


@click.group(
    short_help="Show and change the fair keys of a queue.",
    epilog="""\b
Examples:
  zq fair list render
  zq fair list render --order wait
  zq fair set render acme --weight 4 --max-in-flight 20
  zq fair unset render acme

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
def fair() -> None:
    """Show and change fair keys, between which the workers of a queue are shared."""


@fair.command(
    epilog="""\b
Examples:
  zq fair list render
  zq fair list render --order depth --limit 20
  zq fair list render --json

SHARE is the part of the queue that the key gets while all keys have jobs. BEHIND is the workers'
time until its turn, by weight: the key at 0 is next. MEAN is how long its jobs take, OLDEST for how
long its first job waits, and SET what is set for the key. With --json, each key is a line, as
GET /queues/QUEUE/fair has it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@click.option(
    "--order",
    type=click.Choice([order.value for order in FairOrder]),
    default=FairOrder.SHARE.value,
    show_default=True,
    help="The next ones first, those that wait longest, or those with most jobs.",
)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Keys.")
@tabled
@talks
def list(remote: Remote, queue: str, order: Any, limit: int) -> None:
    """List the keys of QUEUE that have unfinished jobs."""
    found = remote.run(_keys(remote).page(queue, order, 0, limit))
    if remote.as_json:
        for each in found.keys:
            print_json(msgspec.to_builtins(each))
        return
    print_table(COLUMNS, map(_row, found.keys), least=LEAST)
    if found.next is not None:
        say(f"{len(found.keys):,} of {found.total:,} keys: --limit shows more", err=True)


@fair.command(
    epilog="""\b
Examples:
  zq fair set render acme --weight 4
  zq fair set render acme --max-in-flight 20 --rate 5.5

What is left out is left to the jobs of the key and to the setting `fair` of the queue.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@click.argument("key")
@click.option(
    "--weight",
    type=click.FloatRange(MIN_WEIGHT, MAX_WEIGHT),
    help="A key of weight 2 gets twice the share of one of weight 1.",
)
@click.option("--max-in-flight", type=click.IntRange(1, MAX_UINT32), help="Jobs in flight at once.")
@click.option(
    "--rate", type=click.FloatRange(0, MAX_RATE, min_open=True), help="Deliveries a second."
)
@talks
def set(remote: Remote, queue: str, key: str, **options: Any) -> None:
    """Set the weight and the limits of KEY in QUEUE."""
    from zq.features.fair.client import FairLimit

    if all(value is None for value in options.values()):
        raise click.UsageError("say what to set: --weight, --max-in-flight, --rate")
    limit = remote.run(_keys(remote).put(queue, key, FairLimit(**options)))
    if remote.as_json:
        print_json(msgspec.to_builtins(limit))
    else:
        say(f"{one_line(key)} of {one_line(queue)} has {_told(limit)}")


@fair.command(
    epilog="""\b
Examples:
  zq fair unset render acme

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("queue", type=NAME)
@click.argument("key")
@talks
def unset(remote: Remote, queue: str, key: str) -> None:
    """Leave the weight and the limits of KEY in QUEUE to its jobs and its queue."""
    remote.run(_keys(remote).drop(queue, key))
    if remote.as_json:
        print_json({"queue": queue, "key": key, "unset": True})
    else:
        say(f"nothing is set for {one_line(key)} of {one_line(queue)} any more")


def _keys(remote: Remote) -> "ServerFairKeys":
    from zq.features.fair.client import ServerFairKeys

    return ServerFairKeys(remote.backend.ask)


def _row(key: "FairKeyDocument") -> tuple[object, ...]:
    return (
        key.key,
        "" if key.share is None else f"{key.share:.1%}",
        "" if key.behind_ms is None else f"{key.behind_ms:,.0f} ms",
        key.waiting,
        key.in_flight,
        "" if key.mean_ms is None else f"{key.mean_ms:,.0f} ms",
        "" if key.oldest_ready is None else ago(key.oldest_ready),
        "" if key.limit is None else _told(key.limit),
    )


def _told(limit: "FairLimit") -> str:
    """The weight and the limits that are set for a key, in words."""
    said = (
        (limit.weight, "weight {:g}"),
        (limit.max_in_flight, "at most {:,} in flight"),
        (limit.rate, "{:g} a second"),
    )
    return ", ".join(text.format(value) for value, text in said if value is not None)


COMMANDS = {Section.QUEUES: (fair,)}
