"""The commands about devices."""

from collections.abc import Sequence
from typing import ClassVar

from zq.features.devices.model import Device, DeviceReport
from zq.features.history.model import StoredAttempt
from zq.features.producers.model import Producer, ProducerMark
from zq.model.commands import Command, SyncRule
from zq.model.reach import EVERYWHERE, Reach


class ReportDevice(Command[Device], frozen=True):
    """Store what a device says of itself. The errors are `DeviceTaken` and `TooManyDevices`."""

    name: str
    report: DeviceReport


class AppendHistory(Command[Producer], frozen=True):
    """Append attempts of a device to the history here, those that it does not have yet.

    The number of a record is that of the device. The errors are `ProducerFenced` and
    `TooManyProducers`.
    """

    brings_more: ClassVar[bool] = True
    sync: ClassVar[SyncRule] = SyncRule.CHANGES
    items: ClassVar[str | None] = "records"

    device: str
    mark: ProducerMark
    """`seq` is the number of the first record."""
    records: Sequence[StoredAttempt]
    reach: Reach = EVERYWHERE
    """Records of other queues are not kept."""


class ForgetDevice(Command[None], frozen=True):
    """Delete what is stored of a device. The error is `DeviceNotFound`."""

    brings_more: ClassVar[bool] = False
    name: str


class OpenLane(Command[bool], frozen=True):
    """Let jobs leave for a device that were stored in its queues by their names.

    Returns False if there are none. The errors are `LanesMeet` and `TooManyLanes`.
    """

    sync: ClassVar[SyncRule] = SyncRule.NONE

    device: str
