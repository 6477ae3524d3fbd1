"""litequeue. Its worker is the loop of pop and done from its docs, which polls every 10 ms."""

from __future__ import annotations

import json
import time
from typing import Any

from litequeue import LiteQueue

from bench.peers.tally import PLACE, handle
from bench.peers.work import in_threads

LOOK_EVERY = 0.01


def open_queue() -> Any:
    queue = LiteQueue(f"{PLACE.directory}/litequeue.db", timeout=60)
    if PLACE.mode == "fsync":
        queue.conn.execute("PRAGMA synchronous = FULL")
    return queue


class Client:
    def __init__(self) -> None:
        self._queue = open_queue()

    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        self._queue.put(json.dumps(job))

    def close(self) -> None:
        self._queue.close()


def connect() -> Client:
    return Client()


def consume() -> None:
    queue = open_queue()
    while True:
        if message := queue.pop():
            handle(json.loads(message.data))
            queue.done(message.message_id)
        else:
            time.sleep(LOOK_EVERY)


def work(concurrency: int) -> None:
    in_threads(concurrency, consume)
