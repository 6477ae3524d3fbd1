"""`python -m bench.peers.produce ADAPTER ORDER`: enqueue through a peer's client, print a receipt.

The clock starts when clients are connected. All callers share an asynchronous client, as its
documentation advises. Of any other client each caller has one, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.peers.wire import Order, Receipt, dump, job, load_order


class Book:
    """Hands out jobs to callers and notes the results."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._firsts = itertools.count(0, order.batch)
        self.jobs = 0
        self.times: list[float] = []
        self._noting = threading.Lock()
        self.began = 0.0

    def start(self) -> None:
        self.began = time.perf_counter()

    @property
    def due(self) -> float:
        return self.began + self.order.delay if self.order.delay else 0.0

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Batches for one caller, until the order is filled or its time is up."""
        end = self.began + self.order.seconds
        for first in self._firsts:
            if first >= self.order.jobs or time.perf_counter() > end:
                return
            at = self.due or self._turn(first)
            last = min(first + self.order.batch, self.order.jobs)
            yield [job(number, at, self.order) for number in range(first, last)]

    def _turn(self, number: int) -> float:
        """When it is this job's turn. A caller that is late does not move the turn."""
        rate = self.order.rate
        return self.began + number / rate if rate else time.perf_counter()

    def delay_left(self) -> float:
        return max(0.0, self.due - time.perf_counter()) if self.due else 0.0

    def note(self, jobs: int, seconds: float) -> None:
        with self._noting:
            self.jobs += jobs
            if self.order.call:
                self.times.append(seconds)


def until(at: float) -> float:
    return max(0.0, at - time.perf_counter())


def call(book: Book, client: Any, batch: list[dict[str, Any]]) -> Any:
    """One call of the client. The result is a coroutine if the client is asynchronous."""
    if book.order.call:
        return client.call(batch[0])
    if book.order.batch > 1:
        return client.enqueue_many(batch, book.delay_left())
    return client.enqueue(batch[0], book.delay_left())


def caller(book: Book, client: Any) -> None:
    for batch in book.batches():
        if book.order.rate:
            time.sleep(until(batch[0]["at"]))
        sent = time.perf_counter()
        call(book, client, batch)
        book.note(len(batch), time.perf_counter() - sent)


async def async_caller(book: Book, client: Any) -> None:
    for batch in book.batches():
        if book.order.rate:
            await asyncio.sleep(until(batch[0]["at"]))
        sent = time.perf_counter()
        await call(book, client, batch)
        book.note(len(batch), time.perf_counter() - sent)


def receipt(book: Book, cpu: float) -> Receipt:
    seconds = time.perf_counter() - book.began
    return Receipt(book.jobs, book.began, seconds, time.process_time() - cpu, book.times)


def produce(order: Order, connect: Callable[[], Any]) -> Receipt:
    """Run the callers in threads. The first failure ends the program."""
    book = Book(order)
    clients = [connect() for _ in range(order.callers)]
    failures: list[BaseException] = []

    def run(client: Any) -> None:
        try:
            caller(book, client)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=[client]) for client in clients]
    cpu = time.process_time()
    book.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = receipt(book, cpu)
    for client in clients:
        client.close()
    if failures:
        raise failures[0]
    return done


async def async_produce(order: Order, connect: Callable[[], Any]) -> Receipt:
    book = Book(order)
    client = await connect()
    cpu = time.process_time()
    book.start()
    await asyncio.gather(*(async_caller(book, client) for _ in range(order.callers)))
    done = receipt(book, cpu)
    await client.close()
    return done


def main() -> None:
    name, text = sys.argv[1:]
    adapter = importlib.import_module(f"bench.peers.adapters.{name}")
    order = load_order(text)
    if inspect.iscoroutinefunction(adapter.connect):
        done = asyncio.run(async_produce(order, adapter.connect))
    else:
        done = produce(order, adapter.connect)
    print(dump(done), flush=True)


if __name__ == "__main__":
    main()
