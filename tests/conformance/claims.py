"""Requests that claim jobs, and what the tests of claims share."""

import asyncio
from typing import Any

from .client import Client, Doc, Reply
from .streams import PATIENCE_S, pause

LEASE_MS = 30_000
"""Where nobody says anything else."""


async def claim(client: Client, queue: str = "default", **fields: Any) -> list[Doc]:
    """Claim now; the jobs."""
    reply = await ask(client, queue, **fields)
    assert reply.status == 200, reply.doc
    jobs: list[Doc] = reply.doc["jobs"]
    return jobs


async def ask(client: Client, queue: str = "default", **fields: Any) -> Reply:
    return await client.post(f"/queues/{queue}/claim", {"holder": "me"} | fields)


async def claim_one(client: Client, **fields: Any) -> Doc:
    (job,) = await claim(client, **fields)
    return job


async def until_claiming(client: Client, count: int) -> None:
    """Let the server get to the point where so many claims wait."""
    async with asyncio.timeout(PATIENCE_S):
        while client.site.server.engine.streams.claiming != count:
            await pause()


async def set_queue(client: Client, queue: str = "default", **settings: Any) -> None:
    reply = await client.call("PUT", f"/queues/{queue}/settings", settings)
    assert reply.status == 200, reply.doc
