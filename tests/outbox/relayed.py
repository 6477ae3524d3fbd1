"""A relay that runs beside a test, and what it has moved."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from conformance.streams import PATIENCE_S, pause

from zq import outbox
from zq.client.app import App

from .conftest import Database


@contextlib.asynccontextmanager
async def relaying(app: App, database: Database) -> AsyncIterator[asyncio.Task[None]]:
    """A relay that runs for as long as the context lasts."""
    task = asyncio.create_task(outbox.Relay(app, database.url).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def sent(app: App) -> list[int]:
    """The arguments of all jobs, in the order in which the server has stored them."""
    found: list[int] = []
    after = None
    while True:
        page = await app.backend.jobs(after=after, limit=1000)
        found += [job.payload["args"][0] for job in page.jobs]
        if page.after is None:
            return found
        after = page.after


async def until_sent(app: App, number: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await app.backend.count() < number:
            await pause()
