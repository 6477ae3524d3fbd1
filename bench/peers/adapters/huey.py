"""huey, on SQLite or on Redis."""

from __future__ import annotations

from typing import Any

from huey import RedisHuey, SqliteHuey
from redis import ConnectionPool

from bench.peers.tally import PLACE, handle
from bench.peers.wire import TRIES

# redis-py's default limit is too low for 100 workers.
CONNECTIONS = 256


def open_huey() -> Any:
    if PLACE.address:
        pool = ConnectionPool.from_url(PLACE.address, max_connections=CONNECTIONS)
        return RedisHuey("bench", connection_pool=pool, results=PLACE.results, notify_result=True)
    # With the default of five seconds, a locked file ends a run with 64 writers.
    filename = f"{PLACE.directory}/huey.db"
    return SqliteHuey("bench", filename=filename, results=PLACE.results, timeout=60)


huey = open_huey()


@huey.task(retries=TRIES - 1 if PLACE.failing else 0)
def noop(payload: dict[str, Any]) -> dict[str, Any] | None:
    return handle(payload)


class Client:
    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        if delay:
            noop.schedule((job,), delay=delay)
        else:
            noop(job)

    def call(self, job: dict[str, Any]) -> None:
        noop(job)(blocking=True, timeout=30)

    def close(self) -> None:
        huey.storage.close()


def connect() -> Client:
    return Client()
