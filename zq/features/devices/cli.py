"""`zq devices`: shows the devices of a server, sends them jobs, and forgets them."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from zq.cli.drawing import tabled
from zq.cli.output import ago, print_json, print_table, span
from zq.cli.remote import Remote, talks
from zq.cli.rooms import Section
from zq.cli.terminal import counted, one_line, say
from zq.features.devices.model import DeviceOrder

if TYPE_CHECKING:
    from zq.features.devices.client import DeviceDocument, ServerDevices

COLUMNS = ("DEVICE", "SEEN", "UNSENT", "OLDEST", "CLOCK", "VERSION", "WRONG")
LEAST = ("VERSION", "CLOCK", "OLDEST")
"""The columns that narrow terminals do without, the least important one first."""


@click.group(
    epilog="""\b
Examples:
  zq devices list
  zq devices list --order lag
  zq devices send 'device-*' commands '{"version": "1.9"}' --type update --group update-1.9
  zq devices lacking update-1.9
  zq devices forget device-17

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
""",
)
def devices() -> None:
    """Show and forget the devices of a server, and send them jobs."""


@devices.command(
    epilog="""\b
Examples:
  zq devices list
  zq devices list --order silence --limit 20
  zq devices list --json

UNSENT counts the jobs that a device had not sent when it reported, and OLDEST is the age that the
oldest of them had. CLOCK is how far its clock is ahead. WRONG may be silent, behind and clock. With
--json, each device is a line, as GET /devices has it.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.option(
    "--order",
    type=click.Choice([order.value for order in DeviceOrder]),
    default=DeviceOrder.NAME.value,
    show_default=True,
    help="By name, those heard of longest ago first, or those furthest behind.",
)
@click.option(
    "--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Devices."
)
@tabled
@talks
def list(remote: Remote, order: Any, limit: int) -> None:
    """List the devices, with what they have not sent yet."""
    found = remote.run(_devices(remote).page(order, 0, limit))
    if remote.as_json:
        for each in found.devices:
            print_json(msgspec.to_builtins(each))
        return
    print_table(COLUMNS, map(_row, found.devices), least=LEAST)
    if found.next is not None:
        say(f"{len(found.devices):,} of {found.total:,} devices: --limit shows more", err=True)


@devices.command(
    epilog="""\b
Examples:
  zq devices send device-17 commands '{"at": "03:00"}' --type reboot
  zq devices send 'device-*' commands @update.json --type update --group update-1.9
  zq devices send '*' commands hello

Each known device gets a job of its own, or none does if the server refuses. The jobs wait at the
server until the devices fetch them. They have one group, which zq devices lacking asks about. A
device that reports for the first time later gets none.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("to", metavar="DEVICE|BEGINNING*")
@click.argument("queue")
@click.argument("payload", required=False, metavar="[JSON|TEXT|@FILE|-]")
@click.option("--type", "type_", metavar="NAME", help="Type of the job. [default: the queue]")
@click.option("--group", help="Group of the jobs. [default: a new one]")
@click.option("--priority", type=click.IntRange(0, 65_535), help="Priority. 0 is the most urgent.")
@click.option("--text", is_flag=True, help="Send the payload as text, even if it looks like JSON.")
@talks
def send(
    remote: Remote,
    to: str,
    queue: str,
    payload: str | None,
    type_: str | None,
    group: str | None,
    priority: int | None,
    text: bool,
) -> None:
    """Send a job for QUEUE of one device, or of all whose names begin so."""
    from msgspec import Raw

    from zq.cli.bulk import JobLine
    from zq.cli.push import payload_of

    data = Raw(payload_of(payload, as_text=text))
    job = JobLine(queue=queue, type=type_ or queue, payload=data, group=group, priority=priority)
    sent = remote.run(_devices(remote).send(to, job))
    if remote.as_json:
        print_json(msgspec.to_builtins(sent))
        return
    say(sent.group)
    say(f"{counted(sent.devices, 'device')} will get it: zq devices lacking {sent.group}", err=True)


@devices.command(
    epilog="""\b
Examples:
  zq devices lacking update-1.9
  zq devices lacking update-1.9 --json

STATE is waiting until the device says that it has stored its job. It is missed if the device will
never get it: it has refused the job, or the job was cancelled or has expired.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("group")
@tabled
@talks
def lacking(remote: Remote, group: str) -> None:
    """List the devices that do not have their job of GROUP, up to a hundred."""
    found = remote.run(_devices(remote).lacking(group))
    if remote.as_json:
        print_json(msgspec.to_builtins(found))
        return
    rows = [(each, "waiting") for each in found.devices]
    print_table(("DEVICE", "STATE"), rows + [(each, "missed") for each in found.missed])
    if found.waiting > len(found.devices):
        say(f"{len(found.devices):,} of {found.waiting:,} devices that wait", err=True)


@devices.command(
    epilog="""\b
Examples:
  zq devices forget device-17

Another device may have this name then. The numbers of its lanes are kept: see zq producers.

Exit codes: 0, 1 if the server refuses, 2 for wrong usage, 3 if no server answers.
"""
)
@click.argument("name")
@talks
def forget(remote: Remote, name: str) -> None:
    """Forget the device NAME."""
    remote.run(_devices(remote).forget(name))
    remote.tell()
    if remote.as_json:
        print_json({"forgotten": name})
    else:
        say(f"the device {one_line(name)} is forgotten")


def _devices(remote: Remote) -> "ServerDevices":
    from zq.features.devices.client import ServerDevices

    return ServerDevices(remote.backend.ask)


def _row(device: "DeviceDocument") -> tuple[object, ...]:
    sign = "-" if device.clock_ms < 0 else "+"
    return (
        device.name,
        ago(device.seen_at),
        device.jobs,
        "" if device.oldest_ms is None else span(device.oldest_ms),
        f"{sign}{span(abs(device.clock_ms))}",
        device.version,
        ", ".join(device.faults),
    )


COMMANDS = {Section.QUEUES: (devices,)}
