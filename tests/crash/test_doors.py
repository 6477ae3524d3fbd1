"""Kills while jobs come and go by three doors: no acknowledged one is lost, or comes back."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from conformance.client import Client
from conformance.streams import pause
from process.server import ServerProcess, running
from rooms import needs
from tiers import sizes

pytestmark = needs("doors.topics")

ENOUGH = 150
"""Jobs that are finished before each kill."""
LEASE_MS = 60_000
AT_ONCE = 5
PAGE = 2_000


@dataclass
class Ledger:
    """What callers know of jobs, by the numbers in their payloads."""

    numbers: "count[int]" = field(default_factory=count)
    sent: set[int] = field(default_factory=set)
    stored: set[int] = field(default_factory=set)
    tried: set[int] = field(default_factory=set)
    """Jobs of which somebody has said that they are done, whether there was an answer or not."""
    done: set[int] = field(default_factory=set)

    def take(self, number: int) -> None:
        """A job was handed out."""
        assert number in self.sent, "nobody has sent it"
        assert number not in self.done, "it was done already"


async def enqueue(client: Client, ledger: Ledger) -> None:
    await _add(ledger, client, "/jobs", lambda n: {"queue": "q", "type": "t", "payload": n}, 201)


async def send(client: Client, ledger: Ledger) -> None:
    await _add(ledger, client, "/api/messages", lambda n: {"topic": "q", "payload": str(n)}, 201)


async def append(client: Client, ledger: Ledger) -> None:
    await _add(ledger, client, "/v0/topics/q", lambda n: {"records": [{"data": n}]}, 200)


async def take(client: Client, ledger: Ledger) -> None:
    """A worker of the native API."""
    wanted = {"holder": "n", "max": AT_ONCE, "lease_ms": LEASE_MS}
    while True:
        for job in (await client.post("/queues/q/claim", wanted)).doc["jobs"]:
            await _finish(ledger, job["payload"], client, f"/jobs/{job['id']}/success", {}, 204)


async def dequeue(client: Client, ledger: Ledger) -> None:
    """A worker of `/api`."""
    wanted = {"topic": "q", "count": AT_ONCE}
    while True:
        for each in (await client.post("/api/messages/dequeue", wanted)).doc["messages"]:
            path = f"/api/messages/{each['id']}/ack"
            await _finish(ledger, each["payload"], client, path, {}, 204)


async def claim(client: Client, ledger: Ledger) -> None:
    """A worker of `/v0`."""
    wanted = {"node": "w", "max": AT_ONCE}
    while True:
        for each in (await client.post("/v0/topics/q/claim", wanted)).doc["claimed"]:
            sent = {"node": "w", "seqs": [each["$seq"]], "lease_ids": [each["lease_id"]]}
            await _finish(ledger, each["data"], client, "/v0/topics/q/ack", sent, 200)


CALLERS: tuple[Callable[[Client, Ledger], Coroutine[Any, Any, None]], ...] = (
    *(enqueue, send, append),
    *(take, dequeue, claim),
)


@sizes("kills", 2, 100)
async def test_what_three_doors_acknowledge_survives_kills(tmp_path: Path, kills: int) -> None:
    ledger, flags = Ledger(), ("--queue-ti-max-retries", "3")
    for kill in range(kills):
        async with running(tmp_path / "data", *flags) as server, server.client() as client:
            if not kill:
                config = {"type": "queue", "durable": True, "lease_ms": LEASE_MS}
                assert (await client.call("PUT", "/v0/topics/q", config)).status == 201
            callers = [asyncio.create_task(_until_killed(run(client, ledger))) for run in CALLERS]
            await _kill_after(ledger, (kill + 1) * ENOUGH, server, callers)
            await asyncio.gather(*callers)
    async with running(tmp_path / "data", *flags) as server, server.client() as client:
        left = await _left(client)
    assert len(left) == len(set(left)), "stored twice"
    assert ledger.stored - ledger.tried <= set(left), "lost"
    assert not ledger.done & set(left), "came back"


async def _left(client: Client) -> list[int]:
    """The numbers of all jobs that are there, page by page."""
    found: list[int] = []
    after: dict[str, str] = {}
    while page := await client.jobs(queue="q", limit=PAGE, **after):
        found += [int(job["payload"]) for job in page]
        after = {"from": page[-1]["id"]}
    return found


async def _add(
    ledger: Ledger, client: Client, path: str, body: Callable[[int], object], status: int
) -> None:
    while True:
        number = next(ledger.numbers)
        ledger.sent.add(number)
        assert (await client.post(path, body(number))).status == status
        ledger.stored.add(number)


async def _finish(
    ledger: Ledger, said: object, client: Client, path: str, body: object, status: int
) -> None:
    """Say that a job is done that was handed out."""
    number = int(str(said))
    ledger.take(number)
    ledger.tried.add(number)
    assert (await client.post(path, body)).status == status
    ledger.done.add(number)


async def _until_killed(calls: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(httpx.HTTPError):
        await calls


async def _kill_after(
    ledger: Ledger, number: int, server: ServerProcess, callers: list["asyncio.Task[None]"]
) -> None:
    """Kill the server once so many jobs are done, or a caller has found something wrong."""
    while len(ledger.done) < number and not any(each.done() for each in callers):
        await pause()
    await server.kill()
