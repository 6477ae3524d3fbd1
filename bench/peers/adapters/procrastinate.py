"""procrastinate on PostgreSQL."""

from __future__ import annotations

from typing import Any

from procrastinate import App, PsycopgConnector, RetryStrategy

from bench.peers.tally import PLACE, handle
from bench.peers.wire import TRIES

app = App(connector=PsycopgConnector(conninfo=PLACE.address))


@app.task(name="noop", retry=RetryStrategy(max_attempts=TRIES - 1))
async def noop(payload: dict[str, Any]) -> None:
    handle(payload)


def deferrer(delay: float) -> Any:
    return noop.configure(schedule_in={"seconds": delay}) if delay else noop


class Client:
    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await deferrer(delay).defer_async(payload=job)

    async def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        await deferrer(delay).batch_defer_async(*({"payload": job} for job in jobs))

    async def close(self) -> None:
        await app.close_async()


async def connect() -> Client:
    await app.open_async()
    return Client()
