"""arq on Redis."""

from __future__ import annotations

from typing import Any

from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Retry

from bench.peers.tally import PLACE, Deliberate, handle
from bench.peers.wire import TRIES

SETTINGS = RedisSettings.from_dsn(PLACE.address)


async def noop(context: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return handle(payload)
    except Deliberate as error:
        raise Retry from error


class WorkerSettings:
    redis_settings = SETTINGS
    functions = (noop,)
    max_jobs = PLACE.concurrency
    max_tries = TRIES
    keep_result = 3600 if PLACE.results else 0


class Client:
    def __init__(self, redis: Any) -> None:
        self._redis = redis

    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await self._redis.enqueue_job("noop", job, _defer_by=delay or None)

    async def call(self, job: dict[str, Any]) -> None:
        handle = await self._redis.enqueue_job("noop", job)
        await handle.result(timeout=30)

    async def close(self) -> None:
        await self._redis.aclose()


async def connect() -> Client:
    return Client(await create_pool(SETTINGS))
