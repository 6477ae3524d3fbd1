"""RQ on Redis."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from redis import Redis
from rq import Queue, Retry

from bench.peers.tally import PLACE, handle
from bench.peers.wire import TRIES

RESULT_SECONDS = 500 if PLACE.results else 0


def noop(payload: dict[str, Any]) -> dict[str, Any] | None:
    return handle(payload)


class Client:
    def __init__(self) -> None:
        redis = Redis.from_url(PLACE.address)
        redis.ping()  # connects
        self._queue = Queue("bench", connection=redis)
        self._options: dict[str, Any] = {"result_ttl": RESULT_SECONDS}
        if PLACE.failing:
            self._options["retry"] = Retry(max=TRIES - 1)

    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        if delay:
            self._queue.enqueue_in(timedelta(seconds=delay), noop, job, **self._options)
        else:
            self._queue.enqueue(noop, job, **self._options)

    def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        self._queue.enqueue_many(
            [Queue.prepare_data(noop, (job,), **self._options) for job in jobs]
        )

    def call(self, job: dict[str, Any]) -> None:
        result = self._queue.enqueue(noop, job, **self._options).latest_result(timeout=30)
        if result is None or result.return_value is None:
            raise RuntimeError("no result came back")

    def close(self) -> None:
        self._queue.connection.close()


def connect() -> Client:
    return Client()
