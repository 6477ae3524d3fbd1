"""The reads of devices."""

import sqlite3

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
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

_ORDERS = {
    DeviceOrder.NAME: "name",
    DeviceOrder.SILENCE: "seen_at, name",
    DeviceOrder.LAG: "oldest_ms DESC, jobs DESC, name",
}

_LIMITS = {"silent_after": SILENT_AFTER, "behind_ms": BEHIND_MS, "clock_ms": CLOCK_MS}

_devices = msgspec.json.Decoder(list[tuple[Device, int]])


class SqliteDeviceReads(DeviceReads):
    """The reads of devices by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def devices(self, order: DeviceOrder, skip: int, limit: int) -> list[SeenDevice]:
        return await self._lanes.views(_page, None, order, skip, limit)

    async def device(self, name: str) -> SeenDevice | None:
        found = await self._lanes.looks(_page, name, DeviceOrder.NAME, 0, 1)
        return found[0] if found else None

    async def devices_named(self, beginning: str, *, is_fleet: bool) -> list[str]:
        return await self._lanes.looks(_named, beginning, is_fleet)

    async def some_devices(self, now: int, most: int) -> int:
        return await self._lanes.looks(_some, now, most)

    async def device_sums(self, now: int) -> DeviceSums:
        return await self._lanes.views(_sums, now)


def _page(
    connection: sqlite3.Connection, device: str | None, order: DeviceOrder, skip: int, limit: int
) -> list[SeenDevice]:
    query = QUERIES["devices"].replace("ORDERED", _ORDERS[order])
    asked = {"device": device, "skip": skip, "limit": limit}
    (text,) = connection.execute(query, asked).fetchone()
    return [SeenDevice(*each) for each in _devices.decode(text)]


def _named(connection: sqlite3.Connection, beginning: str, is_fleet: bool) -> list[str]:
    asked = {"beginning": beginning, "is_fleet": is_fleet}
    (text,) = connection.execute(QUERIES["devices_named"], asked).fetchone()
    return msgspec.json.decode(text, type=list[str])


def _some(connection: sqlite3.Connection, now: int, most: int) -> int:
    names = {"now": now, "most": most, "silent_after": SILENT_AFTER}
    found: int = connection.execute(QUERIES["some_devices"], names).fetchone()[0]
    return found


def _sums(connection: sqlite3.Connection, now: int) -> DeviceSums:
    row = connection.execute(QUERIES["device_sums"], {"now": now, **_LIMITS}).fetchone()
    return DeviceSums(*map(int, row))


READS = {DeviceReads: SqliteDeviceReads}
