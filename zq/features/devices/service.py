"""The verbs about devices: their reports, looks at them, and forgetting them."""

from typing import Self

from zq.engine.inbox import Inbox
from zq.features.devices.commands import ForgetDevice, ReportDevice
from zq.features.devices.errors import DeviceNotFound, DeviceOutOfReach
from zq.features.devices.model import (
    DeviceOrder,
    DeviceReport,
    DeviceSums,
    SeenDevice,
    check_device,
    speaks_for,
)
from zq.features.devices.store import DeviceReads
from zq.model.clock import Clock
from zq.model.keys import Key
from zq.service.services import Services
from zq.store.api import Store


class Devices:
    """Devices by name. They belong to no queue: callers who look need a reach of all queues."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The devices of a server."""
        return cls(services.store, services.engine.inbox, services.clock)

    def __init__(self, store: Store, inbox: Inbox, clock: Clock) -> None:
        self._reads = store.reads.of(DeviceReads)
        self._inbox = inbox
        self._clock = clock

    async def report(self, name: str, report: DeviceReport, key: Key | None) -> None:
        """Store what a device says of itself.

        Raises `InvalidRequest`, `DeviceOutOfReach`, `DeviceTaken` or `TooManyDevices`.
        """
        check_device(name)
        if not speaks_for(key, name):
            raise DeviceOutOfReach(name)
        await self._inbox.ask(ReportDevice(name, report))

    async def page(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        """Up to `limit` devices in this order, without the first `skip`."""
        return await self._reads.devices(order, skip, limit)

    async def sums(self) -> DeviceSums:
        """All devices together."""
        return await self._reads.device_sums(self._clock.now_ms())

    async def get(self, name: str) -> SeenDevice:
        """One device. Raises `InvalidRequest` or `DeviceNotFound`."""
        check_device(name)
        found = await self._reads.device(name)
        if found is None:
            raise DeviceNotFound(name)
        return found

    async def forget(self, name: str) -> None:
        """Delete a device: another one may have its name. Raises `DeviceNotFound`."""
        check_device(name)
        await self._inbox.ask(ForgetDevice(name))
