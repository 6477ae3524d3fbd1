"""The reads of devices."""

from zq.features.devices.model import (
    BEHIND_MS,
    CLOCK_MS,
    SILENT_AFTER,
    DeviceOrder,
    DeviceSums,
    SeenDevice,
)
from zq.features.devices.store import DeviceReads
from zq.store.snapshot import Snapshot, SnapshotLanes

_ORDERS = {
    DeviceOrder.NAME: "name",
    DeviceOrder.SILENCE: "seen_at, name",
    DeviceOrder.LAG: "oldest_ms DESC NULLS LAST, jobs DESC, name",
}

_LIMITS = {"silent_after": SILENT_AFTER, "behind_ms": BEHIND_MS, "clock_ms": CLOCK_MS}


class StoredDeviceReads(DeviceReads):
    """The reads of devices by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def devices(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        return await self._lanes.views(_page, None, order, skip, limit)

    async def device(self, name: str) -> SeenDevice | None:
        found = await self._lanes.looks(_page, name, DeviceOrder.NAME, 0, 1)
        return found[0] if found else None

    async def devices_named(self, beginning: str, *, is_fleet: bool) -> list[str]:
        asked = {"beginning": beginning, "is_fleet": is_fleet}
        return await self._lanes.looks.found(str, "devices_named", **asked)

    async def some_devices(self, now: int, most: int) -> int:
        asked = {"now": now, "most": most, "silent_after": SILENT_AFTER}
        return int(await self._lanes.looks.value("some_devices", **asked))

    async def device_sums(self, now: int) -> DeviceSums:
        return await self._lanes.views(_sums, now)


def _page(
    snapshot: Snapshot, device: str | None, order: DeviceOrder, skip: int, limit: int
) -> list[SeenDevice]:
    asked = {"device": device, "skip": skip, "limit": limit}
    return snapshot.found(SeenDevice, "devices", {"ORDERED": _ORDERS[order]}, **asked)


def _sums(snapshot: Snapshot, now: int) -> DeviceSums:
    (row,) = snapshot.rows("device_sums", now=now, **_LIMITS)
    return DeviceSums(*map(int, row))


READS = {DeviceReads: StoredDeviceReads}
