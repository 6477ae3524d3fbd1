"""Beside many long reads, deliveries, metrics and health do not wait."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from zq.store.lanes import MOST_WAITING, SCANNERS

from .client import JSON, Client, Reply, new_job
from .site import Site

SCANS = SCANNERS + MOST_WAITING + 6
BETWEEN = MOST_WAITING // 2
"""Whoever waits in the line of scans sees more of them done than this."""

TRIES = 10
"""A busy machine may keep anyone waiting now and then. Who waits in the line does so each time."""


class Crowd:
    """Clients that count without an end, by what no index serves."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.done = 0
        self.refused: list[Reply] = []
        self.is_crowded = asyncio.Event()

    async def count(self) -> None:
        while True:
            reply = await self._client.get("/jobs/count", attempts="7")
            if reply.status == 200:
                self.done += 1
            else:
                self.refused.append(reply)
                self.is_crowded.set()
                await asyncio.sleep(0)

    async def meanwhile(self, ask: Callable[[], Awaitable[Reply]]) -> int:
        """How many scans come to their end while something else is answered well."""
        before = self.done
        assert (await ask()).status == 200
        return self.done - before


@asynccontextmanager
async def crowd(client: Client) -> AsyncIterator[Crowd]:
    """As many as fill the line of scans, and some more."""
    counting = Crowd(client)
    tasks = [asyncio.create_task(counting.count()) for _ in range(SCANS)]
    await counting.is_crowded.wait()
    yield counting
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def json_client(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        for _ in range(6):
            await client.enqueue_many(10_000)
        yield client


async def test_beside_very_many_scans_all_else_is_answered_at_once(json_client: Client) -> None:
    client = json_client
    large = new_job(queue="large", payload="x" * 100_000)
    assert (await client.post("/jobs/bulk", {"jobs": [large] * 3 * TRIES})).status == 201

    def claim() -> Awaitable[Reply]:
        return client.post("/queues/large/claim", {"holder": "me", "max": 3})

    async with crowd(client) as counting:
        for ask in (lambda: client.get("/health"), lambda: client.get("/metrics"), claim):
            between: list[int] = []
            while min(between, default=BETWEEN) >= BETWEEN:
                assert len(between) < TRIES, between
                between.append(await counting.meanwhile(ask))
    refusal = counting.refused[0]
    assert (refusal.status, refusal.headers["zq-error"]) == (503, "readers_busy")
    assert int(refusal.headers["retry-after"]) >= 1
    assert "narrow the filters" in refusal.error
    # All who asked for it at once share a read or two: nobody is refused.
    counts = await asyncio.gather(*(client.count(queue="default") for _ in range(SCANS)))
    assert counts == [60_000] * SCANS
