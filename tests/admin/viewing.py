"""A viewer of the admin API for tests: a real WebSocket of aiohttp's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.operators.admin.engine import Viewers

Event = dict[str, Any]

ADMIN = {"no_admin": False, "admin_port": 0}

HEAD, TAIL = {"kind": "head"}, {"kind": "tail"}
NOBODY = "01AAAAAAAAAAAAAAAAAAAAAAAA"

BEAT_MS = 100

LONGEST_SILENCE = 50
"""Heartbeats, of which each takes a fifth of a second here."""


def is_reading(site: Site) -> bool:
    """True while the server reads some view for its viewers."""
    return any(view._reading for view in site.server.services.engine[Viewers]._views.values())


class Watcher:
    """What one viewer says and hears. The server's clock goes on while it waits.

    The clock stands still while the server reads a view. A reading on a busy machine would
    otherwise seem to take seconds, and the view would then rest for minutes of this clock.
    """

    def __init__(self, site: Site, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.site = site
        self.socket = socket
        self._silent = 0

    async def say(self, **message: Any) -> None:
        await self.socket.send_json(message)

    async def hear(self) -> Event:
        """The next event."""
        message = asyncio.create_task(self.socket.receive())
        async with asyncio.timeout(PATIENCE_S):
            while not message.done():
                if not is_reading(self.site):
                    self.site.clock.advance(BEAT_MS)
                await asyncio.wait([message], timeout=0.01)
        event: Event = message.result().json()
        self._silent = self._silent + 1 if event["event"] == "heartbeat" else 0
        assert self._silent < LONGEST_SILENCE, "it is told of nothing"
        return event

    async def told(self) -> Event:
        """The next event that is no heartbeat: time passes quickly here."""
        while (event := await self.hear())["event"] == "heartbeat":
            pass
        return event

    async def hear_of(self, kind: str) -> Event:
        """The next event of a kind; others are dropped."""
        while True:
            event = await self.hear()
            if event["event"] == kind:
                return event

    async def changes(self, count: int) -> list[tuple[str, str]]:
        """The next changes, as (status, id); heartbeats are dropped, and nothing else may come."""
        changes: list[tuple[str, str]] = []
        while len(changes) < count:
            event = await self.told()
            assert event["event"] == "job_changed", event
            changes.append((event["status"], event["id"]))
        return changes

    async def subscribe(self, list: str, anchor: dict[str, Any], limit: int) -> Event:
        """The window that a subscription shows."""
        await self.say(type="subscribe", list=list, anchor=anchor, limit=limit)
        window: Event = (await self.hear_of("job_snapshot"))[list]
        return window


@asynccontextmanager
async def watching(site: Site, **options: Any) -> AsyncIterator[Watcher]:
    """A viewer that has not read its first snapshot yet."""
    async with (
        aiohttp.ClientSession(trust_env=False) as http,
        http.ws_connect(f"{site.admin_url}/events", **options) as socket,
    ):
        yield Watcher(site, socket)


def ids(window: Event) -> list[str]:
    return [job["id"] for job in window["items"]]
