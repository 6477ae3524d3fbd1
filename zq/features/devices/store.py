"""What may be read of devices, whichever the store is."""

from zq.features.devices.model import (
    BEHIND_MS,
    CLOCK_MS,
    SILENT_AFTER,
    DeviceOrder,
    DeviceSums,
    LaneReport,
    SeenDevice,
)
from zq.store.snapshot import Snapshot, SnapshotLanes

_ORDERS = {
    DeviceOrder.NAME: "name",
    DeviceOrder.SILENCE: "seen_at, name",
    DeviceOrder.LAG: "oldest_ms DESC NULLS LAST, jobs DESC, name",
}

_LIMITS = {"silent_after": SILENT_AFTER, "behind_ms": BEHIND_MS, "clock_ms": CLOCK_MS}


class DeviceReads:
    """The reads of devices."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def devices(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        """Up to `limit` devices in this order, without the first `skip`."""
        return await self._lanes.views(_page, None, order, skip, limit)

    async def device(self, name: str) -> SeenDevice | None:
        """The device of this name, if it has reported."""
        found = await self._lanes.looks(_page, name, DeviceOrder.NAME, 0, 1)
        return found[0] if found else None

    async def devices_named(self, beginning: str, *, is_fleet: bool) -> list[str]:
        """The names of devices that begin with a text, or the one with this name."""
        asked = {"beginning": beginning, "is_fleet": is_fleet}
        return await self._lanes.looks.found(str, "devices_named", **asked)

    async def some_devices(self, now: int, most: int) -> int:
        """How many devices are not silent at a time in milliseconds, up to a number."""
        asked = {"now": now, "most": most, "silent_after": SILENT_AFTER}
        return int(await self._lanes.looks.value("some_devices", **asked))

    async def device_sums(self, now: int) -> DeviceSums:
        """All devices together, at a time in milliseconds."""
        return await self._lanes.views(_sums, now)


def _page(
    snapshot: Snapshot, device: str | None, order: DeviceOrder, skip: int, limit: int
) -> list[SeenDevice]:
    asked = {"device": device, "skip": skip, "limit": limit}
    return snapshot.found(SeenDevice, "devices", {"ORDERED": _ORDERS[order]}, **asked)


def _sums(snapshot: Snapshot, now: int) -> DeviceSums:
    (row,) = snapshot.rows("device_sums", now=now, **_LIMITS)
    return DeviceSums(*map(int, row))


READS = (DeviceReads,)

FORMS = {"devices": {"lanes": list[LaneReport]}}
"""The forms of what columns hold, by table."""
