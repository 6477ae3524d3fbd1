"""What devices bring to the tick: reports, their history, jobs for a device, and forgetting."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from zq.features.devices.model import (
    MAKER,
    MAX_DEVICES,
    AppendHistory,
    Device,
    DeviceNotFound,
    DeviceTaken,
    ForgetDevice,
    NobodyThere,
    OpenLane,
    ReportDevice,
    TooManyDevices,
    addressee,
    lane_to,
    reported,
    rule_to,
)
from zq.features.forward.commands import PutLane
from zq.features.forward.model import new_epoch
from zq.features.forward.tick_lanes import put_lane
from zq.features.history.tick import append_forwarded
from zq.features.producers.tick import ProducerBook
from zq.model.commands import Enqueue
from zq.model.errors import ZqError
from zq.tick.hooks import Hooks, Options
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


def append_history(work: UnitOfWork, commands: Sequence[AppendHistory]) -> list[object]:
    """Append the records of devices that are new here.

    Their numbers may have gaps, since a device forgets records, too. Nothing is sent before what is
    ahead of it was answered, so a gap stays one.
    """
    book = ProducerBook(work, [command.mark for command in commands])
    replies: list[object] = []
    for command in commands:
        mark = command.mark
        verdict = book.judge(replace(mark, seq=1), 0)
        if isinstance(verdict, ZqError):
            replies.append(verdict)
            continue
        last = verdict.producer.last
        new = command.records[max(0, last + 1 - mark.seq) :]
        if new:
            kept = [record for record in new if command.reach.covers(record.queue)]
            append_forwarded(work, command.device, kept)
            last = mark.seq + len(command.records) - 1
        producer = replace(verdict.producer, last=last, at=work.now, first=last + 1, key=0, step=0)
        book.learn(producer)
        replies.append(producer)
    book.write()
    return replies


def admit(work: UnitOfWork, command: Enqueue) -> ZqError | None:
    """Let the jobs of a command leave for their devices. Return why one cannot be stored."""
    names = {name for job in command.jobs if (name := addressee(job.options)) is not None}
    if not names:
        return None
    known = {row[0]: row[1] for row in work.tx.table("read_addressees", names=list(names))}
    for name in sorted(names):
        if name not in known:
            return NobodyThere(name)
        if not known[name]:
            try:
                _open(work, name)
            except ZqError as error:
                return error
    return None


def open_lanes(work: UnitOfWork, commands: Sequence[OpenLane]) -> list[object]:
    """Make lanes of devices for jobs that have come to their queues without them."""
    replies: list[object] = []
    for command in commands:
        waits = any(
            work.tx.names("ready_queues", prefix=beginning)
            for beginning in rule_to(command.device).patterns.beginnings
        )
        try:
            if waits:
                _open(work, command.device)
                work.effects.promised = True
            replies.append(waits)
        except ZqError as error:
            replies.append(error)
    return replies


def _open(work: UnitOfWork, device: str) -> None:
    put_lane(work, PutLane(lane_to(device), rule_to(device), new_epoch(MAKER)))


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
