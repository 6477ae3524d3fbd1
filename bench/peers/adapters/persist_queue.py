"""persist-queue's SQLiteAckQueue. A worker process polls every 10 ms, since a put in another
process does not wake it."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from persistqueue import Empty, SQLiteAckQueue

from bench.peers.tally import PLACE, handle
from bench.peers.work import in_threads

LOOK_EVERY = 0.01


def open_queue() -> Any:
    return SQLiteAckQueue(PLACE.directory, multithreading=True, timeout=60)


class Client:
    """One queue for all threads: `multithreading` allows that."""

    shared: Any = None

    def enqueue(self, job: dict[str, Any], delay: float) -> None:
        self.shared.put(job)

    def close(self) -> None:
        """The queue ends with the process."""


def connect() -> Client:
    if Client.shared is None:
        Client.shared = open_queue()
    return Client()


def consume(queue: Any) -> None:
    while True:
        try:
            item = queue.get(block=False)
        except Empty:
            time.sleep(LOOK_EVERY)
            continue
        handle(item)
        queue.ack(item)


def work(concurrency: int) -> None:
    queue = open_queue()
    in_threads(concurrency, partial(consume, queue))
