"""Servers of zq on one PostgreSQL, as processes, and what they keep."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from conformance.client import Client
from process.server import SCRIPT, ServerProcess


@asynccontextmanager
async def served(
    address: str, *flags: str, before: tuple[str, ...] = ()
) -> AsyncIterator[ServerProcess]:
    """A server on a database. It is killed in the end."""
    server = await ServerProcess.spawn(None, *SCRIPT, "--store", address, *flags, before=before)
    try:
        yield await server.listening()
    finally:
        await server.kill()


async def all_jobs(client: Client) -> AsyncIterator[dict[str, str]]:
    """All jobs that there are."""
    page = await client.jobs(limit=2000)
    while page:
        for job in page:
            yield job
        page = await client.jobs(limit=2000, **{"from": page[-1]["id"]})
