"""The verbs about devices: their reports, looks at them, and forgetting them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from zq.engine.inbox import Inbox
from zq.features.devices.commands import ForgetDevice, ReportDevice
from zq.features.devices.engine import DeviceBell, WaitingFetch
from zq.features.devices.errors import DeviceNotFound, DeviceOutOfReach
from zq.features.devices.model import (
    SHARED_BATCH,
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
        engine = services.engine
        devices = cls(services.store, engine.inbox, services.clock, engine[DeviceBell])
        engine.when_let_go.append(devices.close)
        return devices

    def __init__(self, store: Store, inbox: Inbox, clock: Clock, bell: DeviceBell) -> None:
        self._reads = store.reads.of(DeviceReads)
        self._inbox = inbox
        self._clock = clock
        self._waiting = bell.listens
        self.has_stopped = False
        """True once nobody may wait any more."""

    async def report(self, name: str, report: DeviceReport, key: Key | None) -> None:
        """Store what a device says of itself.

        Raises `InvalidRequest`, `DeviceOutOfReach`, `DeviceTaken` or `TooManyDevices`.
        """
        check_device(name)
        if not speaks_for(key, name):
            raise DeviceOutOfReach(name)
        await self._inbox.ask(ReportDevice(name, report))
        former = self._waiting.get(name)
        if former is not None and former.instance != report.instance:
            former.awake.set()

    def close(self) -> None:
        """Let nobody wait any more."""
        self.has_stopped = True
        for each in self._waiting.values():
            each.awake.set()

    @contextmanager
    def waiting(self, name: str, instance: str, awake: asyncio.Event) -> Iterator[None]:
        """An instance of a device waits within the context for what is for it.

        A device that asks again has lost the connection before, so the former wait ends.
        """
        if (former := self._waiting.get(name)) is not None:
            former.awake.set()
        self._waiting[name] = mine = WaitingFetch(instance, awake)
        try:
            yield
        finally:
            if self._waiting.get(name) is mine:
                del self._waiting[name]

    async def batch(self) -> int | None:
        """The most jobs of a request, for each device; None if there is but one.

        A large request keeps those of other devices waiting.
        """
        several = await self._reads.some_devices(self._clock.now_ms(), 2) > 1
        return SHARED_BATCH if several else None

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
