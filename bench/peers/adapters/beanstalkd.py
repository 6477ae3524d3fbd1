"""beanstalkd through greenstalk. Its worker is the loop of reserve, work, delete from its docs."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

import greenstalk

from bench.peers.tally import PLACE, Deliberate, handle
from bench.peers.wire import TRIES
from bench.peers.work import in_threads


def client() -> Any:
    host, _, port = PLACE.address.partition(":")
    return greenstalk.Client((host, int(port)))


class Client:
    def __init__(self) -> None:
        self._client = client()

    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        # The protocol counts whole seconds.
        self._client.put(json.dumps(job), delay=ceil(delay))

    def close(self) -> None:
        self._client.close()


def connect() -> Client:
    return Client()


def consume() -> None:
    connection = client()
    while True:
        job = connection.reserve()
        try:
            handle(json.loads(job.body))
        except Deliberate:
            if connection.stats_job(job)["releases"] < TRIES - 1:
                connection.release(job)
                continue
        connection.delete(job)


def work(concurrency: int) -> None:
    in_threads(concurrency, consume)
