"""The reads of devices."""

import msgspec

from zq.features.devices.model import (
    BEHIND_MS,
    CLOCK_MS,
    SILENT_AFTER,
    Device,
    DeviceOrder,
    DeviceSums,
    SeenDevice,
)
from zq.features.devices.store import DeviceReads
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load(__name__)

_ORDERS = {
    DeviceOrder.NAME: "name",
    DeviceOrder.SILENCE: "seen_at, name",
    DeviceOrder.LAG: "oldest_ms DESC NULLS LAST, jobs DESC, name",
}

_LIMITS = {"silent_after": SILENT_AFTER, "behind_ms": BEHIND_MS, "clock_ms": CLOCK_MS}


class PostgresDeviceReads(DeviceReads):
    """The reads of devices by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def devices(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        return await self._lanes.views(_page, None, order, skip, limit)

    async def device(self, name: str) -> SeenDevice | None:
        found = await self._lanes.looks(_page, name, DeviceOrder.NAME, 0, 1)
        return found[0] if found else None

    async def devices_named(self, beginning: str, *, is_fleet: bool) -> list[str]:
        asked = {"beginning": beginning, "is_fleet": is_fleet}
        found = await self._lanes.looks(rows_of, QUERIES["devices_named"], asked)
        return [name for (name,) in found]

    async def some_devices(self, now: int, most: int) -> int:
        asked = {"now": now, "most": most, "silent_after": SILENT_AFTER}
        ((found,),) = await self._lanes.looks(rows_of, QUERIES["some_devices"], asked)
        return int(found)

    async def device_sums(self, now: int) -> DeviceSums:
        (row,) = await self._lanes.views(rows_of, QUERIES["device_sums"], {"now": now, **_LIMITS})
        return DeviceSums(*row)


def _page(
    connection: Connection, device: str | None, order: DeviceOrder, skip: int, limit: int
) -> list[SeenDevice]:
    query = QUERIES["devices"].replace("ORDERED", _ORDERS[order])
    found = rows_of(connection, query, {"device": device, "skip": skip, "limit": limit})
    return [SeenDevice(msgspec.convert(each, Device), seen_at) for each, seen_at in found]


READS = {DeviceReads: PostgresDeviceReads}
