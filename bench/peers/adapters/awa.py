"""awa on PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from awa import AsyncClient

from bench.peers.tally import PLACE, handle
from bench.peers.wire import TRIES


@dataclass
class Noop:
    n: int
    user: str
    at: float


def options(delay: float) -> dict[str, Any]:
    due = datetime.now(UTC) + timedelta(seconds=delay) if delay else None
    return {"queue": "bench", "max_attempts": TRIES, "run_at": due}


class Client:
    def __init__(self) -> None:
        self._awa = AsyncClient(PLACE.address)

    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await self._awa.insert(Noop(**job), **options(delay))

    async def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        await self._awa.enqueue_many_copy([Noop(**job) for job in jobs], **options(delay))

    async def close(self) -> None:
        await self._awa.close()


async def connect() -> Client:
    return Client()


async def serve(concurrency: int) -> None:
    client = AsyncClient(PLACE.address)

    @client.task(Noop, queue="bench")
    async def noop(job: Any) -> None:
        handle(asdict(job.args))

    await client.start([("bench", concurrency)])
    await asyncio.Event().wait()


def work(concurrency: int) -> None:
    asyncio.run(serve(concurrency))


async def prepare() -> None:
    """Make the tables of a new installation, which its bulk call needs before a worker runs."""
    async with AsyncClient(PLACE.address) as client:
        await client.migrate()
        await client.install_queue_storage()


if __name__ == "__main__":
    asyncio.run(prepare())
