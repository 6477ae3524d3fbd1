"""One scenario on a disk of which one call fails: every answer stays true."""

import contextlib
import signal
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
from conformance.client import Client, Reply
from conformance.streams import Job, StreamEnded
from process.server import ServerProcess, running

from .actors import Notebook
from .disk import Disk, Fault
from .history import Delivery, Enqueue, Failure, Kill, Outcome, StreamEnd, StreamStart, Success, now
from .lives import check_file, take_stock

SIZES = (10, 10, 700, 40_000, 10, 1_000_000, 10, 300)
"""Payloads. Two of them have pages of their own."""

BULK = [10] * 130
"""The payloads of as many jobs as lead to a checkpoint in the middle."""

WINDOW = 6
CLEAN, DISK_FAILED = 0, 74
REFUSALS = {"storage_full", "unavailable", "inbox_full", "internal"}
"""Answers that say that nothing was done; all others of their statuses leave it open."""


class Scribe:
    """Does the same things in the same order, and writes down what came of them."""

    def __init__(self, client: Client, notebook: Notebook) -> None:
        self._client = client
        self._notebook = notebook

    async def act(self) -> None:
        """Go through the scenario, or as far as the server lets one."""
        with contextlib.suppress(httpx.TransportError, StreamEnded):
            for size in SIZES:
                await self._enqueue([size])
            await self._enqueue(BULK)
            await self._work()

    async def _enqueue(self, sizes: list[int]) -> None:
        jobs: list[Job] = [
            {"queue": "q", "type": "t", "payload": self._payload(size)} for size in sizes
        ]
        start = now()
        reply, result = await self._post("/jobs/bulk", {"jobs": jobs}, 201)
        stored = reply.doc["jobs"] if reply and result is Outcome.OK else [{"id": ""}] * len(jobs)
        for job, answer in zip(jobs, stored, strict=True):
            self._notebook.add(
                Enqueue(
                    start=start,
                    end=now(),
                    job=job["payload"]["name"],
                    outcome=result,
                    id=answer["id"],
                    queue="q",
                )
            )

    def _payload(self, size: int) -> dict[str, Any]:
        return {"name": self._notebook.new_name(), "pad": "x" * size, "size": size}

    async def _work(self) -> None:
        number, start = self._notebook.new_stream(), now()
        stream = await self._client.take(prefetch=WINDOW)
        self._notebook.add(StreamStart(start=start, end=now(), stream=number, window=WINDOW))
        for turn in range(WINDOW):
            job = await stream.job()
            self._note(job, number)
            name = job["payload"]["name"]
            if turn % 3 == 2:
                await self._fail(job["id"], name)
            else:
                await self._succeed(job["id"], name)
        start = now()
        await stream.close()
        self._notebook.add(StreamEnd(start=start, end=now(), stream=number))

    def _note(self, job: Job, stream: int) -> None:
        payload = job["payload"]
        self._notebook.add(
            Delivery(
                start=job["dequeued_at"],
                end=now(),
                job=payload["name"],
                id=job["id"],
                stream=stream,
                attempts=job["attempts"],
                intact=len(payload["pad"]) == payload["size"],
            )
        )

    async def _succeed(self, id: str, name: str) -> None:
        start = now()
        _, result = await self._post("/jobs/success", {"ids": [id]}, 204)
        self._notebook.add(Success(start=start, end=now(), job=name, outcome=result))

    async def _fail(self, id: str, name: str) -> None:
        start = now()
        reply, result = await self._post(f"/jobs/{id}/failure", {"message": "no"}, 200)
        attempts = reply.doc["attempts"] if reply and result is Outcome.OK else 0
        self._notebook.add(
            Failure(start=start, end=now(), job=name, outcome=result, attempts=attempts)
        )

    async def _post(self, target: str, document: Any, done: int) -> tuple[Reply | None, Outcome]:
        try:
            reply = await self._client.post(target, document)
        except httpx.TransportError:
            return None, Outcome.UNKNOWN
        if reply.status == done:
            return reply, Outcome.OK
        assert reply.status in (500, 503, 507), (reply.status, reply.body)
        refused = reply.headers["zq-error"] in REFUSALS
        return reply, Outcome.REFUSED if refused else Outcome.UNKNOWN


def any_unknown(notebook: Notebook) -> bool:
    """Whether the server has left something open."""
    unknown = Outcome.UNKNOWN
    return any(getattr(event, "outcome", None) is unknown for event in notebook.history)


async def suffer(disk: Disk, fault: Fault, notebook: Notebook) -> int:
    """Run the scenario from a first start to a stop; the server's exit code."""
    server = await ServerProcess.spawn(disk.root, env=disk.environment(fault))
    try:
        if await server.starts():
            async with server.client() as client:
                await Scribe(client, notebook).act()
            if not any_unknown(notebook):  # otherwise it ends by itself
                with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                    server.signal(signal.SIGTERM)
        code = await server.exited()
        # One that ends by itself may meet the signal when it has nothing left to do but to exit.
        has_failed = any("the disk has failed" in message for message in server.messages)
        return DISK_FAILED if code == -signal.SIGTERM and has_failed else code
    finally:
        start = now()
        await server.kill()
        notebook.add(Kill(start=start, end=now()))


async def recover(disk: Disk, notebook: Notebook) -> None:
    """The machine goes down with the failing disk; then a start on one that is whole."""
    disk.cut_power(0.0, Random(0))
    if (disk.root / "zq.db").exists():
        check_file(disk.root)
    async with running(disk.root) as server, server.client() as client:
        await take_stock(client, notebook)


def growing(step: float) -> Iterator[int]:
    """1, 2, 3… and then ever larger steps: each number is `step` times the last."""
    number = 1
    while True:
        yield number
        number = max(number + 1, int(number * step))
