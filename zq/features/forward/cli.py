"""`zq forward`: shows the lanes of a server, and changes them."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.output import ago, print_json, print_table, span
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import one_line, say
from zq.cli.words import MILLISECONDS

if TYPE_CHECKING:
    from zq.features.forward.client import HubDocument, LaneDocument, ServerLanes

HUB_COLUMNS = ("HUB", "STATE", "FETCHED", "REFUSED", "RECORDS", "LAST", "ERROR")
COLUMNS = ("LANE", "STATE", "WAITING", "OLDEST", "ARRIVED", "LAST", "QUEUES", "URL")
LEAST = ("URL", "QUEUES", "LAST", "ARRIVED")
"""The columns that narrow terminals do without, the least important one first."""

CODES = "Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers."


@click.group(
    short_help="Show and change the lanes to other servers.",
    epilog=f"""\b
Examples:
  zq forward list
  zq forward add up --queue 'sensor*' --to https://hub.example.org
  zq forward status up

{CODES}
""",
)
def forward() -> None:
    """Show and change lanes, by which the jobs of queues go to another server."""


@forward.command(
    epilog=f"""\b
Examples:
  zq forward list
  zq forward list --json

WAITING jobs are still here, and OLDEST is the age of the oldest. ARRIVED counts since the start of
the server, and LAST is when some arrived last. With --json, each lane is a line, as GET /forward
has it.

{CODES}
"""
)
@tabled
@talks
def list(remote: Remote) -> None:
    """List the lanes by name."""
    found = remote.run(_lanes(remote).all())
    if remote.as_json:
        for lane in found:
            print_json(msgspec.to_builtins(lane))
        return
    print_table(COLUMNS, map(_row, found), least=LEAST)


@forward.command(
    epilog=f"""\b
Examples:
  zq forward hubs
  zq forward hubs --json

FETCHED counts the jobs that have come from a hub for this server since its start, and REFUSED those
that it could not store: they are dead at the hub. RECORDS of the history have gone there. With
--json, each hub is a line, as GET /forward has it.

{CODES}
"""
)
@tabled
@talks
def hubs(remote: Remote) -> None:
    """List the hubs that lanes lead to, and what comes back from them."""
    found = remote.run(_lanes(remote).hubs())
    if remote.as_json:
        for hub in found:
            print_json(msgspec.to_builtins(hub))
        return
    print_table(HUB_COLUMNS, map(_hub_row, found), least=("RECORDS",))


@forward.command(
    epilog=f"""\b
Examples:
  zq forward status
  zq forward status up --json

{CODES}
"""
)
@click.argument("name", required=False)
@talks
def status(remote: Remote, name: str | None) -> None:
    """Show the lane NAME, or all lanes: what waits, since when, and why."""
    lanes = _lanes(remote)
    for lane in remote.run(lanes.all()) if name is None else [remote.run(lanes.get(name))]:
        _tell(remote, lane)
        if not remote.as_json:
            _tell_more(lane)


@forward.command(
    epilog=f"""\b
Examples:
  zq forward add up --queue 'sensor*' --to https://hub.example.org --key-file hub.key
  zq forward add up --queue alarms --to https://hub.example.org --rate 50

A rule for a lane that is there replaces the rule that it has. The command reads the key; the server
stores it.

{CODES}
"""
)
@click.argument("name")
@click.option(
    "--queue",
    "queues",
    multiple=True,
    required=True,
    help="A queue, or the beginning of names with a star; it may be repeated.",
)
@click.option("--to", required=True, help="The address of the hub.")
@click.option("--key-file", type=click.File(), help="The file with the secret of the access key.")
@click.option("--batch", type=click.IntRange(1, 5000), default=500, show_default=True, help="Jobs.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="The most jobs a second.")
@click.option(
    "--behind", is_flag=True, help="Send new jobs first, and what waits for a minute behind them."
)
@click.option(
    "--backlog-rate",
    type=click.FloatRange(0, min_open=True),
    help="With --behind: the most old jobs a second.",
)
@click.option("--buffered", is_flag=True, help="Trust a hub that answers before its disk.")
@click.option("--max-bytes", type=click.IntRange(1), help="The most bytes of payloads that wait.")
@click.option("--max-age", "max_age_ms", type=MILLISECONDS, help="How long a job may wait.")
@click.option(
    "--drop-oldest", is_flag=True, help="Over these limits, drop the oldest jobs and take new ones."
)
@talks
def add(
    remote: Remote,
    name: str,
    queues: tuple[str, ...],
    to: str,
    drop_oldest: bool,
    behind: bool,
    key_file: Any,
    **rule: Any,
) -> None:
    """Have the jobs of queues sent to another server by the lane NAME."""
    from zq.features.forward.client import LaneBody

    body = LaneBody(
        queues=[*queues],
        url=to,
        token=None if key_file is None else key_file.read().strip(),
        backlog="behind" if behind else "in_order",
        when_full="drop_oldest" if drop_oldest else "refuse",
        **rule,
    )
    _tell(remote, remote.run(_lanes(remote).put(name, body)))


@forward.command(
    epilog=f"""\b
Examples:
  zq forward drop up

Its jobs are for the workers here again. Those that are under way may be at the hub as well.

{CODES}
"""
)
@click.argument("name")
@talks
def drop(remote: Remote, name: str) -> None:
    """Forget the lane NAME."""
    remote.run(_lanes(remote).drop(name))
    remote.tell()
    if remote.as_json:
        print_json({"dropped": name})
    else:
        say(f"the lane {one_line(name)} is dropped")


@forward.command(
    epilog=f"""\b
Examples:
  zq forward pause up

{CODES}
"""
)
@click.argument("name")
@talks
def pause(remote: Remote, name: str) -> None:
    """Stop the lane NAME. Its jobs wait."""
    _tell(remote, remote.run(_lanes(remote).pause(name)))


@forward.command(
    epilog=f"""\b
Examples:
  zq forward resume up
  zq forward resume up --take-over

A lane that waits after an error tries at once.

{CODES}
"""
)
@click.argument("name")
@click.option(
    "--take-over", is_flag=True, help="Take the place of another server of this name at the hub."
)
@talks
def resume(remote: Remote, name: str, take_over: bool) -> None:
    """Let the lane NAME go on."""
    _tell(remote, remote.run(_lanes(remote).resume(name, take_over=take_over)))


def _lanes(remote: Remote) -> "ServerLanes":
    from zq.features.forward.client import ServerLanes

    return ServerLanes(remote.backend.ask)


def _tell(remote: Remote, lane: "LaneDocument") -> None:
    if remote.as_json:
        print_json(msgspec.to_builtins(lane))
        return
    oldest = "" if lane.lag_ms is None else f", the oldest for {span(lane.lag_ms)}"
    waits = f"{lane.waiting:,} jobs with {lane.bytes:,} bytes wait{oldest}"
    say(f"{one_line(lane.name)} is {lane.state}: {waits}")
    if lane.error is not None:
        say(f"  {one_line(lane.error)}")


def _tell_more(lane: "LaneDocument") -> None:
    last = "none yet" if lane.succeeded_at is None else ago(lane.succeeded_at)
    say(f"  {lane.arrived:,} have arrived, the last ones {last}")
    say(f"  {lane.refused:,} were refused, and {lane.dropped:,} dropped")
    if lane.failure is not None:
        say(f"  the last failure was {ago(lane.failed_at)}: {one_line(lane.failure)}")


def _hub_row(hub: "HubDocument") -> tuple[Any, ...]:
    last = "" if hub.succeeded_at is None else ago(hub.succeeded_at)
    return (hub.url, hub.state, hub.fetched, hub.refused, hub.records, last, hub.error or "")


def _row(lane: "LaneDocument") -> tuple[Any, ...]:
    return (
        lane.name,
        lane.state,
        lane.waiting,
        "" if lane.lag_ms is None else span(lane.lag_ms),
        lane.arrived,
        "" if lane.succeeded_at is None else ago(lane.succeeded_at),
        " ".join(lane.queues),
        lane.url or "",
    )


COMMANDS = {Section.QUEUES: (forward,)}
