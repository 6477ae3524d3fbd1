"""The commands about devices."""

from typing import ClassVar

from zq.features.devices.model import Device, DeviceReport
from zq.model.commands import Command


class ReportDevice(Command[Device], frozen=True):
    """Store what a device says of itself. The errors are `DeviceTaken` and `TooManyDevices`."""

    name: str
    report: DeviceReport


class ForgetDevice(Command[None], frozen=True):
    """Delete what is stored of a device. The error is `DeviceNotFound`."""

    brings_more: ClassVar[bool] = False
    name: str
