"""`zq cron`: shows the cron entries of a server, and changes them."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.filtering import warn_of_queues
from zq.cli.output import ago, print_json, print_table, short
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section, room_options, sent_for_rooms
from zq.cli.terminal import one_line, say
from zq.cli.words import NAME, json_of

if TYPE_CHECKING:
    from zq.features.crons.client import ShownGroup, ShownSchedule

COLUMNS = ("GROUP", "ENTRY", "EXPRESSION", "ZONE", "QUEUE", "TYPE", "NEXT", "LAST", "STATE")
LEAST = ("TYPE", "LAST", "ZONE", "QUEUE")
NEXT_COLUMNS = ("NEXT", "AT", "GROUP", "ENTRY", "QUEUE", "TYPE")
NEXT_LEAST = ("TYPE", "QUEUE", "NEXT")
"""The columns that narrow terminals do without, the least important one first."""


@click.group(
    short_help="Show and change schedules.",
    epilog="""\b
Examples:
  zq cron list
  zq cron add billing nightly '30 2 * * *' reports --type close_day --tz Europe/Berlin
  zq cron next
  zq cron pause billing nightly
  zq cron resume billing
  zq cron remove billing nightly

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
def cron() -> None:
    """Show and change schedules, which enqueue jobs whenever their time comes."""


@cron.command(
    epilog="""\b
Examples:
  zq cron list
  zq cron list billing
  zq cron list --json

With --json, each group is a line, as GET /crons/GROUP has it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("groups", nargs=-1, type=NAME, metavar="[GROUP]…")
@tabled
@talks
def list(remote: Remote, groups: tuple[str, ...]) -> None:
    """List the entries of all groups, or of those that are named."""
    found = _found(remote, groups)
    if remote.as_json:
        for group in found:
            print_json(_document(group))
        return
    rows = (_row(group, entry) for group in found for entry in group.entries)
    print_table(COLUMNS, rows, least=LEAST)


@cron.command(
    epilog="""\b
Examples:
  zq cron add billing nightly '30 2 * * *' reports --type close_day --tz Europe/Berlin
  zq cron add app beat '*/10 * * * * *' beats '{"n": 1}' --key beat
  zq cron add app beat '@hourly' beats --paused
  zq cron add app sync '@hourly' sync --budget crm

An entry of this name is replaced. EXPRESSION has the fields minute, hour, day of month, month, day
of week, and the second before them if there are six.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("group", type=NAME)
@click.argument("entry", type=NAME)
@click.argument("expression")
@click.argument("queue", type=NAME)
@click.argument("payload", required=False, metavar="[JSON|TEXT]")
@click.option("--type", "type_", type=NAME, help="Type of the jobs. [default: ENTRY]")
@click.option("--tz", metavar="ZONE", help="IANA time zone. [default: the group's]")
@click.option("--priority", type=int, help="From 0, the most urgent, to 65535.")
@click.option("--key", type=NAME, help="Unique key: no job while another one has it.")
@room_options
@click.option("--paused", is_flag=True, help="Pause it at once.")
@talks
def add(
    remote: Remote,
    group: str,
    entry: str,
    expression: str,
    queue: str,
    payload: str | None,
    **options: Any,
) -> None:
    """Add ENTRY to GROUP: enqueue a job in QUEUE whenever EXPRESSION comes."""
    from zq.client.values import Submission
    from zq.features.crons.client import Schedule

    job = Submission(
        queue,
        options["type_"] or entry,
        _payload(payload),
        priority=options["priority"],
        unique_key=options["key"],
        **sent_for_rooms(options),
    )
    if not remote.as_json:
        warn_of_queues(remote, [queue])
    paused = True if options["paused"] else None
    wanted = Schedule(entry, expression, job, options["tz"], paused)
    shown = remote.run(remote.backend.schedules.put(group, wanted))
    if remote.as_json:
        print_json(msgspec.to_builtins(shown))
    else:
        say(f"{one_line(f'{group}/{entry}')} fires next {ago(shown.next_enqueue_at)}")


@cron.command(
    epilog="""\b
Examples:
  zq cron pause billing nightly
  zq cron pause billing

What comes while it is paused is not made up for.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("group", type=NAME)
@click.argument("entry", type=NAME, required=False)
@talks
def pause(remote: Remote, group: str, entry: str | None) -> None:
    """Pause ENTRY of GROUP, or all of GROUP."""
    _pause(remote, group, entry, True)


@cron.command(
    epilog="""\b
Examples:
  zq cron resume billing nightly
  zq cron resume billing

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("group", type=NAME)
@click.argument("entry", type=NAME, required=False)
@talks
def resume(remote: Remote, group: str, entry: str | None) -> None:
    """Resume ENTRY of GROUP, or all of GROUP."""
    _pause(remote, group, entry, False)


@cron.command(
    epilog="""\b
Examples:
  zq cron remove billing nightly
  zq cron remove billing

The jobs that it has enqueued stay.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("group", type=NAME)
@click.argument("entry", type=NAME, required=False)
@talks
def remove(remote: Remote, group: str, entry: str | None) -> None:
    """Remove ENTRY of GROUP, or all of GROUP."""
    remote.run(remote.backend.schedules.remove(group, entry))
    _tell(remote, group, entry, "removed")


@cron.command(
    epilog="""\b
Examples:
  zq cron next
  zq cron next billing --limit 3
  zq cron next billing --count 5             the next five times of each entry
  zq cron next --json

What is paused is left out. AT is in this machine's time zone. So are the times after the first of
an entry that names no zone.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("groups", nargs=-1, type=NAME, metavar="[GROUP]…")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Rows.")
@click.option(
    "--count", type=click.IntRange(min=1), default=1, show_default=True, help="Times of an entry."
)
@tabled
@talks
def next(remote: Remote, groups: tuple[str, ...], limit: int, count: int) -> None:
    """Show what fires next, the earliest first."""
    waiting = [
        (at, group, entry)
        for group in _found(remote, groups)
        for entry in group.entries
        if not (group.paused or entry.paused or entry.fault)
        for at in islice(_times(group, entry), count)
    ]
    waiting.sort(key=lambda each: (each[0], each[1].name, each[2].name))
    if remote.as_json:
        for at, group, entry in waiting[:limit]:
            document = msgspec.to_builtins(entry) | {"next_enqueue_at": at}
            print_json({"group": group.name} | document)
        return
    print_table(
        NEXT_COLUMNS,
        (
            (ago(at), _local(at), group.name, entry.name, entry.job["queue"], entry.job["type"])
            for at, group, entry in waiting[:limit]
        ),
        least=NEXT_LEAST,
    )


def _found(remote: Remote, groups: tuple[str, ...]) -> "tuple[ShownGroup, ...]":
    schedules = remote.backend.schedules
    names: Sequence[str] = groups or remote.run(schedules.groups())
    return tuple(remote.run(schedules.group(name)) for name in names)


def _times(group: "ShownGroup", entry: "ShownSchedule") -> Iterator[int]:
    """When an entry fires: first what the server says, then what follows by its expression."""
    from tzlocal import get_localzone

    from zq.features.crons.model_expression import CronExpression, zone_named

    name = entry.timezone or group.timezone
    zone, at = get_localzone() if name is None else zone_named(name), entry.next_enqueue_at
    expression = CronExpression(entry.expression)
    while at is not None:
        yield at
        at = expression.after(at, zone)


def _row(group: "ShownGroup", entry: "ShownSchedule") -> tuple[object, ...]:
    zone = entry.timezone or group.timezone or ""
    state = "paused" if entry.paused else "group paused" if group.paused else ""
    if entry.fault is not None:
        state = f"set aside: {one_line(entry.fault)}"
    return (
        *(group.name, entry.name, entry.expression, zone),
        *(entry.job["queue"], short(entry.job["type"])),
        *(ago(entry.next_enqueue_at), ago(entry.last_enqueue_at), state),
    )


def _pause(remote: Remote, group: str, entry: str | None, paused: bool) -> None:
    remote.run(remote.backend.schedules.pause(group, entry, paused))
    _tell(remote, group, entry, "paused" if paused else "resumed")


def _tell(remote: Remote, group: str, entry: str | None, what: str) -> None:
    if remote.as_json:
        print_json({"group": group, "entry": entry, what: True})
    else:
        say(f"{one_line(group if entry is None else f'{group}/{entry}')} is {what}")


def _document(group: "ShownGroup") -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(group)
    return document


def _payload(word: str | None) -> Any:
    """The word as JSON, or as text if it is not JSON. No word means null."""
    if word is None:
        return None
    try:
        return json_of(word)
    except ValueError as error:
        if word.lstrip()[:1] in ("{", "[", '"'):
            raise click.UsageError(f"the payload looks like JSON but is not: {error}") from None
        return word


def _local(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().isoformat(" ", "seconds")


COMMANDS = {Section.QUEUES: (cron,)}
