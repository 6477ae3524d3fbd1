"""Jobs for devices: each device that has some has a lane, made with the first of them."""

from collections.abc import Sequence

from zq.features.devices.commands import OpenLane
from zq.features.devices.errors import NobodyThere
from zq.features.devices.model_address import MAKER, addressee, lane_to, rule_to
from zq.features.forward.commands import PutLane
from zq.features.forward.model import new_epoch
from zq.features.forward.tick_table import put_lane
from zq.model.commands import Enqueue
from zq.model.errors import ZqError
from zq.tick.work import UnitOfWork


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
