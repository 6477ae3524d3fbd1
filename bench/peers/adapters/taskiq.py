"""taskiq on Redis streams: its only Redis broker that has acknowledgements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from taskiq import SimpleRetryMiddleware, TaskiqScheduler
from taskiq_redis import ListRedisScheduleSource, RedisAsyncResultBackend, RedisStreamBroker

from bench.peers.tally import PLACE, handle
from bench.peers.wire import TRIES


def open_broker() -> Any:
    # Id 0 includes the messages that were sent before the first worker started.
    found = RedisStreamBroker(PLACE.address, consumer_id="0")
    if PLACE.results:
        found = found.with_result_backend(RedisAsyncResultBackend(PLACE.address))
    if PLACE.failing:
        found = found.with_middlewares(SimpleRetryMiddleware(default_retry_count=TRIES))
    return found


broker = open_broker()
source = ListRedisScheduleSource(PLACE.address)
scheduler = TaskiqScheduler(broker, sources=[source])


@broker.task(task_name="noop", retry_on_error=PLACE.failing)
async def noop(payload: dict[str, Any]) -> dict[str, Any] | None:
    return handle(payload)


class Client:
    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        if delay:
            due = datetime.now(UTC) + timedelta(seconds=delay)
            await noop.schedule_by_time(source, due, job)
        else:
            await noop.kiq(job)

    async def call(self, job: dict[str, Any]) -> None:
        task = await noop.kiq(job)
        result = await task.wait_result(timeout=30)
        result.raise_for_error()

    async def close(self) -> None:
        await broker.shutdown()


async def connect() -> Client:
    await broker.startup()
    await source.startup()
    return Client()
