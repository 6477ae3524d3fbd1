"""Workers that run until nothing is left, and what tests wait for after that."""

import asyncio
from typing import Any

from conformance.site import Site
from conformance.streams import PATIENCE_S, pause

import zq
from zq.client.app import App
from zq.client.values import JobQuery


async def finish(app: App, **options: Any) -> list[zq.Outcome]:
    return await zq.Worker(app, **options).run_until_idle(PATIENCE_S)


async def until_delivered(site: Site, count: int) -> None:
    """Until the server has given out so many jobs, counted each time."""
    async with asyncio.timeout(PATIENCE_S):
        while site.server.engine.stats.jobs.delivered < count:
            await pause()


async def until_resumed(site: Site, app: App, id: str, deliveries: int) -> None:
    """Until a worker goes on with a job that it has got for so many times, all jobs counted."""
    await until_delivered(site, deliveries)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await app.backend.get(id)
            # The end of its stream counts as a stall until the worker has told that it goes on.
            if (found.status, found.stalls or 0) == ("in_flight", 0):
                return
            await pause()


async def until_leased(app: App, id: str, until: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await app.backend.get(id)).lease_until != until:
            await pause()


async def until_ready(app: App, count: int) -> None:
    """The server has to notice that a stream has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count(JobQuery(statuses=("ready",))) != count:
            await pause()


async def pass_time(app: App, site: Site, ms: int) -> None:
    """Let time pass, and what falls due by it become ready."""
    site.clock.advance(ms)
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count(JobQuery(statuses=("scheduled",))):
            await pause()
