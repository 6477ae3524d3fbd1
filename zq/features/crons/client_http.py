"""Cron entries over HTTP."""

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from zq.client.http.calls import HttpCall, HttpRead
from zq.features.crons.client import Schedule, ShownGroup, ShownSchedule


class _Names(msgspec.Struct):
    crons: list[str]


class HttpSchedules:
    """The cron entries of a server, through the requests of its backend."""

    def __init__(self, call: HttpCall, read: HttpRead) -> None:
        self._call = call
        self._read = read

    async def groups(self) -> list[str]:
        """The names of the groups."""
        return self._read(await self._call("GET", "/crons"), _Names).crons

    async def group(self, group: str) -> ShownGroup:
        """A group with its entries by name."""
        return self._read(await self._call("GET", _place(group)), ShownGroup)

    async def replace(
        self, group: str, entries: Sequence[Schedule], timezone: str | None = None
    ) -> ShownGroup:
        """Replace a group and all its entries."""
        body = {"entries": entries, "timezone": timezone}
        reply = await self._call("PUT", _place(group), body, safe=True)
        return self._read(reply, ShownGroup)

    async def put(self, group: str, entry: Schedule) -> ShownSchedule:
        """Add an entry, or replace the entry with its name."""
        reply = await self._call("PUT", _place(group, entry.name), entry, safe=True)
        return self._read(reply, ShownSchedule)

    async def pause(self, group: str, entry: str | None, paused: bool) -> None:
        """Pause or resume an entry, or a whole group."""
        await self._call("PATCH", _place(group, entry), {"paused": paused}, safe=True)

    async def remove(self, group: str, entry: str | None = None) -> None:
        """Delete an entry, or a whole group."""
        await self._call("DELETE", _place(group, entry))


def _place(group: str, entry: str | None = None) -> str:
    place = f"/crons/{quote(group, safe='')}"
    return place if entry is None else f"{place}/entries/{quote(entry, safe='')}"
