"""A device and its hub, each a server of its own in this process, with a cable in between."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conformance.client import JSON, Client, Doc
from conformance.site import Site
from process.cable import Cable

from zq.features.forward.service import HubProgress, Hubs, LaneProgress, Lanes
from zq.store.sqlite.identity import renew_identity

PATIENCE_S = 60.0


class Edge:
    """A device that forwards `out*` to a hub."""

    def __init__(self, root: Path, hub: dict[str, Any] | None = None, **settings: Any) -> None:
        """`settings` are those of the device."""
        self.cable = Cable()
        self.hub = Site(root / "hub", hub or {})
        self.device = Site(root / "device", {"device": "d1"} | settings)
        self.clients: list[Client] = []

    @asynccontextmanager
    async def running(self, key: str | None = None) -> AsyncIterator["Edge"]:
        """`key` is that of the test at the hub."""
        await self.cable.lay()
        await self.hub.start()
        self.cable.target = self.hub.port
        await self.device.start()
        self.near, self.far = Client(self.device, JSON), Client(self.hub, JSON, key)
        try:
            yield self
        finally:
            await self.near.close()
            await self.far.close()
            await self.device.stop()
            await self.hub.stop()
            await self.cable.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.cable.port}"

    @property
    def lanes(self) -> Lanes:
        return self.device.server.services[Lanes]

    @property
    def progress(self) -> LaneProgress:
        return self.lanes.progress("up")

    @property
    def link(self) -> HubProgress:
        return self.device.server.services[Hubs].at(self.url)

    async def lay(self, *queues: str, **rule: Any) -> None:
        from zq.features.forward.model import LaneRule

        await self.lanes.put("up", LaneRule(queues or ("out*",), self.url, **rule))

    async def known(self) -> None:
        """Wait until the hub knows the device."""

        async def is_known() -> bool:
            return bool((await self.far.get("/devices")).doc["total"])

        await until(is_known)

    async def push(self, *payloads: Any, **fields: Any) -> None:
        """Have the device store jobs."""
        jobs = [{"queue": "out", "type": "t", "payload": each, **fields} for each in payloads]
        reply = await self.near.post("/jobs/bulk", {"jobs": jobs})
        assert reply.status == 201, reply.body

    async def arrived(self) -> list[Any]:
        """The payloads of all jobs of the hub, in their order."""
        return [job["payload"] for job in await self.jobs_of(self.far)]

    async def left(self) -> list[Doc]:
        """The jobs of the device."""
        return await self.jobs_of(self.near)

    async def jobs_of(self, client: Client) -> list[Doc]:
        found: list[Doc] = []
        after: str | None = None
        while True:
            given = {} if after is None else {"from": after}
            reply = await client.get("/jobs", limit=2000, **given)
            found += reply.doc["jobs"]
            if not reply.doc["pages"].get("next"):
                return found
            after = found[-1]["id"]

    async def eventually(self, count: int) -> list[Any]:
        """The payloads of the hub, once it has so many jobs and the device has none."""
        await until(self._has(count))
        return await self.arrived()

    def _has(self, count: int) -> Callable[[], Any]:
        async def has() -> bool:
            reply = await self.far.get("/jobs/count")
            left = await self.near.get("/jobs/count", status="ready,in_flight,scheduled")
            return bool(reply.doc["count"] >= count and not left.doc["count"])

        return has

    async def hurry(self) -> None:
        """End a pause of the lane after an error."""
        await self.lanes.pause("up", paused=False)

    async def restart_hub(self, **settings: Any) -> None:
        await self.hub.restart(**settings)
        self.cable.target = self.hub.port
        await self.hurry()

    async def crash(self, site: Site) -> None:
        """Kill a server. No answer is on its way, since a kill takes no time."""
        self.cable.cut()
        await site.crash()
        self.cable.target = self.hub.port
        await self.hurry()

    async def crash_away(self, site: Site) -> None:
        """Kill a server while nothing passes the cable, and leave it cut."""
        self.cable.cut()
        await site.crash()


async def hear_of_another(edge: Edge) -> None:
    """Have the hub know a second device."""
    report = {"instance": "i", "version": "1", "now": edge.hub.now}
    reply = await edge.far.call("PUT", "/devices/another", report)
    assert reply.status == 200, reply.body


def copied(site: Site, to: Path) -> Path:
    """A copy of a stopped site's directory."""
    shutil.copytree(site.root, to)
    return to


def restored(directory: Path) -> Path:
    """A directory as it is once it was restored from a backup: under an identity of its own."""
    connection = sqlite3.connect(directory / "zq.db", isolation_level=None)
    connection.execute("BEGIN")
    renew_identity(connection)
    connection.execute("COMMIT")
    connection.close()
    return directory


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds. It may be a coroutine function."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)
