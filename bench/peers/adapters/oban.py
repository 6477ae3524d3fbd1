"""Oban for Python on PostgreSQL."""

from __future__ import annotations

from typing import Any

from oban import Job, Oban, Snooze, worker
from psycopg_pool import AsyncConnectionPool

from bench.peers.tally import PLACE, Deliberate, handle
from bench.peers.wire import TRIES


@worker(queue="bench", max_attempts=TRIES)
class Noop:
    async def process(self, job: Job) -> Snooze | None:
        try:
            handle(job.args)
        except Deliberate:
            return Snooze(seconds=0)
        return None


class Client:
    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool
        self._oban = Oban(pool=pool)

    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await self._oban.enqueue(new(job, delay))

    async def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        await self._oban.enqueue_many([new(job, delay) for job in jobs])

    async def close(self) -> None:
        await self._pool.close()


def new(job: dict[str, Any], delay: float) -> Any:
    make: Any = Noop  # the decorator adds `new`
    return make.new(job, schedule_in=delay) if delay else make.new(job)


async def connect() -> Client:
    pool = await Oban.create_pool(dsn=PLACE.address)
    return Client(pool)
