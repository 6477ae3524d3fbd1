"""What may be read of devices, whichever the store is."""

from typing import Protocol

from zq.features.devices.model import DeviceOrder, DeviceSums, SeenDevice


class DeviceReads(Protocol):
    """The reads of devices."""

    async def devices(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        """Up to `limit` devices in this order, without the first `skip`."""

    async def device(self, name: str) -> SeenDevice | None:
        """The device of this name, if it has reported."""

    async def devices_named(self, beginning: str, *, is_fleet: bool) -> list[str]:
        """The names of devices that begin with a text, or the one with this name."""

    async def some_devices(self, now: int, most: int) -> int:
        """How many devices are not silent at a time in milliseconds, up to a number."""

    async def device_sums(self, now: int) -> DeviceSums:
        """All devices together, at a time in milliseconds."""
