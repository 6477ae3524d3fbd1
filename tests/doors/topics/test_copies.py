"""A kill at any moment neither loses nor doubles a copy: it is in the transaction of its source."""

import asyncio
import contextlib
from itertools import count
from pathlib import Path

import httpx
from conformance.client import Client
from conformance.streams import pause
from process.server import ServerProcess, running

WRITERS = 8
KILLS = 2
ACKED = 100


async def test_copies_are_what_their_source_is_after_each_kill(tmp_path: Path) -> None:
    acked: set[int] = set()
    numbers = count()
    for kill in range(KILLS):
        async with running(tmp_path / "data") as server, server.client() as client:
            if not kill:
                await _put(client, "topics/a", {"durable": True})
                for dest in ("b", "c"):
                    await _put(client, f"routers/{dest}", {"source": "a", "dest": dest})
                await _put(client, "routers/d", {"source": "b", "dest": "d"})
            writers = [asyncio.create_task(_write(client, numbers, acked)) for _ in range(WRITERS)]
            await _until(acked, (kill + 1) * ACKED, server)
            await asyncio.gather(*writers)
    async with running(tmp_path / "data") as server, server.client() as client:
        source = await _data(client, "a")
        assert acked <= set(source)
        assert len(source) == len(set(source))
        assert [await _data(client, topic) for topic in "bcd"] == [source] * 3


async def _until(acked: set[int], number: int, server: ServerProcess) -> None:
    """Kill the server once so many writes are acknowledged."""
    while len(acked) < number:
        await pause()
    await server.kill()


async def _write(client: Client, numbers: "count[int]", acked: set[int]) -> None:
    with contextlib.suppress(httpx.HTTPError):
        while True:
            number = next(numbers)
            reply = await client.post("/v0/topics/a", {"records": [{"data": number}]})
            assert reply.status == 200
            acked.add(number)


async def _put(client: Client, target: str, body: dict[str, object]) -> None:
    assert (await client.call("PUT", f"/v0/{target}", body)).status == 201


async def _data(client: Client, topic: str) -> list[int]:
    found: list[int] = []
    cursor = 0
    while True:
        reply = await client.post(f"/v0/topics/{topic}/diff", {"from_seq": cursor, "limit": 1_000})
        found += [record["data"] for record in reply.doc["records"]]
        cursor = reply.doc["next_from_seq"]
        if reply.doc["caught_up"]:
            return found
