"""The tick's phases of devices: reports, and devices that are forgotten."""

from collections.abc import Sequence

import msgspec

from zq.features.devices.commands import AppendHistory, ForgetDevice, OpenLane, ReportDevice
from zq.features.devices.errors import DeviceNotFound, DeviceTaken, TooManyDevices
from zq.features.devices.model import MAX_DEVICES, Device, reported
from zq.features.devices.tick_address import admit, open_lanes
from zq.features.devices.tick_history import append_history
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


def hooks(options: Options) -> Hooks[UnitOfWork]:
    """Jobs for devices leave."""
    return Hooks(admits=admit)


def store_reports(work: UnitOfWork, commands: Sequence[ReportDevice]) -> list[object]:
    """Store reports, one after the other."""
    names = list({command.name for command in commands})
    rows = work.tx.table("read_devices", names=names)
    known = {row[0]: msgspec.convert(row, Device) for row in rows}
    room = MAX_DEVICES
    if len(known) < len(names):
        room -= work.tx.value("count_devices")
    replies: list[object] = []
    changed: dict[str, Device] = {}
    for command in commands:
        name, before = command.name, known.get(command.name)
        if before is None and room <= 0:
            replies.append(TooManyDevices(MAX_DEVICES))
            continue
        try:
            device = reported(name, command.report, before, work.now)
        except DeviceTaken as taken:
            replies.append(taken)
            continue
        room -= before is None
        known[name] = changed[name] = device
        replies.append(device)
    if changed:
        work.tx.write("write_devices", devices=list(changed.values()))
    return replies


def forget_devices(work: UnitOfWork, commands: Sequence[ForgetDevice]) -> list[object]:
    """Delete devices by their names."""
    return [
        None if work.tx.run("delete_device", device=each.name) else DeviceNotFound(each.name)
        for each in commands
    ]


PHASES = (
    Phase(Stage.RECORD, by_slices(append_history), (AppendHistory,)),
    Phase(Stage.RECORD, by_slices(store_reports), (ReportDevice,)),
    Phase(Stage.CHANGE, by_slices(forget_devices), (ForgetDevice,)),
    Phase(Stage.CHANGE, by_slices(open_lanes), (OpenLane,)),
)
