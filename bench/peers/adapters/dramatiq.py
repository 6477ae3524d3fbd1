"""Dramatiq on Redis."""

from __future__ import annotations

from typing import Any

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench.peers.tally import PLACE, handle
from bench.peers.wire import TRIES

broker = RedisBroker(url=PLACE.address)
if PLACE.results:
    broker.add_middleware(Results(backend=RedisBackend(url=PLACE.address), store_results=True))
dramatiq.set_broker(broker)


@dramatiq.actor(max_retries=TRIES - 1, min_backoff=1, max_backoff=1)
def noop(payload: dict[str, Any]) -> dict[str, Any] | None:
    return handle(payload)


class Client:
    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        if delay:
            noop.send_with_options(args=(job,), delay=round(delay * 1000))
        else:
            noop.send(job)

    def call(self, job: dict[str, Any]) -> None:
        noop.send(job).get_result(block=True, timeout=30_000)

    def close(self) -> None:
        broker.close()


def connect() -> Client:
    broker.client.ping()  # connects
    return Client()
