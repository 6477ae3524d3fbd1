"""zq through its Python library, with `zq worker`. It takes part if the library is installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.peers.tally import PLACE, Deliberate, handle
from bench.peers.wire import TRIES

# The import is dynamic because a zq without the library lacks the names used here.
zq: Any = import_module("zq")
app = zq.App(f"http://{PLACE.address}")


def user(payload: dict[str, Any]) -> str:
    return str(payload["user"])


@app.task(
    queue="bench",
    max_attempts=TRIES,
    result_ttl=None,
    **({"fair_key": user} if PLACE.fair else {}),
)
async def noop(payload: dict[str, Any]) -> dict[str, Any] | None:
    try:
        return handle(payload)
    except Deliberate as error:
        raise zq.Retry from error


class Client:
    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await delayed(delay).enqueue(job)

    async def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        await delayed(delay).enqueue_many([noop.args(job) for job in jobs])

    async def call(self, job: dict[str, Any]) -> None:
        await noop.call(job)

    async def close(self) -> None:
        await app.close()


def delayed(delay: float) -> Any:
    return noop.options(delay=delay) if delay else noop


async def connect() -> Client:
    return Client()
