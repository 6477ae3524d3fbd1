"""zq without a client library: requests written by hand on keep-alive connections.

The worker works like client libraries: one stream, a prefetch of twice the concurrency, and one
acknowledgement under way. Each acknowledgement carries all jobs that were finished meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import orjson

from bench.http1 import Connection, TakeStream, post
from bench.loops import best_loop, loop_factory
from bench.peers.tally import PLACE, Deliberate, handle
from bench.peers.wire import TRIES

CONNECTIONS = 64
LAST_FAILURE = orjson.dumps({"message": "deliberate"})
# A time given by the worker overrides both the limit of tries and the back-off.
FAILURE = orjson.dumps({"message": "deliberate", "retry_at": 0})


def document(job: dict[str, Any], delay: float) -> dict[str, Any]:
    found: dict[str, Any] = {"queue": "bench", "type": "noop", "payload": job}
    if delay:
        found["ready_at"] = round((time.time() + delay) * 1000)
    if PLACE.fair:
        found["fair_key"] = job["user"]
    if PLACE.failing:
        found["retry_limit"] = TRIES - 1
    return found


async def open_connection(on_reply: Callable[[Connection, float], None]) -> Connection:
    host, _, port = PLACE.address.partition(":")
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(on_reply), host, int(port))
    return connection


class Client:
    """A pool of connections. A request waits for a free one; an error ends all that wait.

    The pool grows as it is used, since a server closes connections that send no request.
    """

    def __init__(self) -> None:
        self._idle: asyncio.LifoQueue[Connection] = asyncio.LifoQueue()
        self._waiting: dict[Connection, asyncio.Future[None]] = {}
        self._all: list[Connection] = []
        self._room = CONNECTIONS
        asyncio.get_running_loop().set_exception_handler(self._on_trouble)

    async def enqueue(self, job: dict[str, Any], delay: float) -> None:
        await self._send("/jobs", document(job, delay))

    async def enqueue_many(self, jobs: list[dict[str, Any]], delay: float) -> None:
        await self._send("/jobs/bulk", {"jobs": [document(job, delay) for job in jobs]})

    async def call(self, job: dict[str, Any]) -> None:
        await self._send("/jobs?wait_ms=30000", document(job, 0))

    async def close(self) -> None:
        for connection in self._all:
            connection.close()

    async def _send(self, path: str, body: dict[str, Any]) -> None:
        connection = await self._connection()
        waiter = self._waiting[connection] = asyncio.get_running_loop().create_future()
        connection.send(post(path, orjson.dumps(body)))
        await waiter

    async def _connection(self) -> Connection:
        if not self._room or not self._idle.empty():
            return await self._idle.get()
        self._room -= 1
        connection = await open_connection(self._on_reply)
        self._all.append(connection)
        return connection

    def _on_reply(self, connection: Connection, seconds: float) -> None:
        self._waiting.pop(connection).set_result(None)
        self._idle.put_nowait(connection)

    def _on_trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(context["message"])
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(error)


async def connect() -> Client:
    return Client()


class Worker:
    """Settles what one stream delivers: successes in bulk, failures one by one."""

    def __init__(self) -> None:
        # The longest idle connection is used next, since a server closes those that send nothing.
        self._resting: deque[Connection] = deque()
        self._done: list[dict[str, Any]] = []
        self._failed: list[dict[str, Any]] = []

    async def open(self) -> None:
        for _ in range(2):
            self._resting.append(await open_connection(self._on_reply))

    def on_lines(self, text: bytes) -> None:
        for line in text.splitlines():
            if line:  # else it is a heartbeat
                self._run(orjson.loads(line))
        self._settle()

    def _run(self, job: dict[str, Any]) -> None:
        try:
            result = handle(job["payload"])
        except Deliberate:
            self._failed.append(job)
        else:
            item = {"id": job["id"]}
            self._done.append(item if result is None else item | {"result": result})

    def _on_reply(self, connection: Connection, seconds: float) -> None:
        self._resting.append(connection)
        self._settle()

    def _settle(self) -> None:
        # One connection stays free while jobs are being gathered: fewer, larger requests.
        if self._done and len(self._resting) == 2:
            done, self._done = self._done, []
            self._resting.popleft().send(post("/jobs/success", orjson.dumps({"items": done})))
        while self._failed and self._resting:
            job = self._failed.pop()
            body = FAILURE if job["attempts"] + 1 < TRIES else LAST_FAILURE
            self._resting.popleft().send(post(f"/jobs/{job['id']}/failure", body))


async def serve(concurrency: int) -> None:
    loop = asyncio.get_running_loop()
    trouble: asyncio.Future[None] = loop.create_future()

    def on_trouble(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not trouble.done():
            trouble.set_exception(context.get("exception") or RuntimeError(context["message"]))

    loop.set_exception_handler(on_trouble)
    worker = Worker()
    await worker.open()
    host, _, port = PLACE.address.partition(":")
    path = f"/jobs/take?queue=bench&prefetch={2 * concurrency}"
    await loop.create_connection(lambda: TakeStream(path, worker.on_lines), host, int(port))
    await trouble


def work(concurrency: int) -> None:
    with asyncio.Runner(loop_factory=loop_factory(best_loop())) as runner:
        runner.run(serve(concurrency))
