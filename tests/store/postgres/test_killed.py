"""Servers that share a database are killed at random under load: nothing is lost, or done twice."""

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from conformance.client import Client
from conformance.streams import PATIENCE_S, StreamEnded, pause
from process.server import ServerProcess

from store.on_postgres import WRONG_COUNTS, database_at
from zq.store.postgres.connection import SESSION, Connection, connect
from zq.store.postgres.owning import value_of

FLAGS = ("serve", "--port", "0", "--no-admin", "--log-format", "json", "--servers", "3")

IN_BETWEEN = 60
"""So many jobs are done between two kills."""

AHEAD = 150
"""So many jobs wait at most, about."""

IDLE_S = 5
"""A worker looks elsewhere that has got nothing for so long."""

GONE = (httpx.HTTPError, StreamEnded, TimeoutError)
"""What a client meets whose server is killed, or that waits for nothing."""

KINDS = ({"queue": "plain"}, {"queue": "other"}, {"queue": "grouped", "group": "g"})
"""Ticks of the first two run beside each other, those of the last one alone."""

TAKEN: tuple[dict[str, Any], ...] = (
    {},
    {"queue": "plain"},
    {"queue": "plain,other"},
    {"queue": "grouped"},
)
"""From which queues a worker takes."""


class Crowd:
    """Two servers, each in the place of one that was killed, and the clients of both."""

    def __init__(self, address: str, random: Random) -> None:
        self.random = random
        self.stored: set[str] = set()
        """The jobs that were acknowledged."""
        self.done: Counter[str] = Counter()
        """How often a job was settled, as its worker was told."""
        self.unknown: set[str] = set()
        """The jobs whose settlement was refused, or not answered, the last ones among them."""
        self.waiting = True
        self.servers: list[ServerProcess] = []
        self._address = address

    async def start(self, place: int) -> None:
        server = await ServerProcess.spawn(None, *FLAGS, "--store", self._address)
        self.servers[place : place + 1] = [await server.listening()]

    async def kill(self, place: int) -> None:
        await self.servers[place].kill()

    async def produce(self) -> None:
        while self.waiting:
            with suppress(*GONE):
                async with self._other() as client:
                    while len(self.stored) < self.done.total() + AHEAD and self.waiting:
                        kind = self.random.choice(KINDS)
                        self.stored.update(await client.enqueue_many(5, **kind))
                        await pause()
            await pause()

    async def work(self) -> None:
        """Take from one server, and settle at any."""
        while True:
            with suppress(*GONE):
                async with self._other() as client:
                    wanted = self.random.choice(TAKEN)
                    stream = await client.take(prefetch=4, **wanted)
                    for _ in range(self.random.randrange(60)):
                        async with asyncio.timeout(IDLE_S):
                            job = await stream.job()
                        await self._settle(job["id"])
            await pause()

    async def _settle(self, job: str) -> None:
        self.unknown.add(job)
        async with self._other() as client:
            reply = await client.post(f"/jobs/{job}/success", None)
        if reply.status < 300:
            self.done[job] += 1
            self.unknown.discard(job)
        else:
            assert reply.status in (404, 503), reply

    def _other(self) -> Client:
        """A new client of some server."""
        return self.random.choice(self.servers).client()


def none_is_wrong(connection: Connection) -> bool:
    """True if the counts agree with the rows at one moment."""
    return value_of(connection, WRONG_COUNTS) == 0


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
async def test_nothing_is_lost_or_done_twice_when_servers_are_killed(
    tmp_path: Path, kills: int
) -> None:
    address = database_at(tmp_path)
    crowd = Crowd(address, Random(kills))
    try:
        for place in range(2):
            await crowd.start(place)
        producers = [asyncio.create_task(crowd.produce()) for _ in range(3)]
        workers = [asyncio.create_task(crowd.work()) for _ in range(6)]
        with connect(address, SESSION) as connection:
            for kill in range(kills):
                until = crowd.done.total() + IN_BETWEEN
                async with asyncio.timeout(PATIENCE_S):
                    while crowd.done.total() < until:
                        assert none_is_wrong(connection)
                        await asyncio.sleep(0.05)
                await crowd.kill(kill % 2)
                await crowd.start(kill % 2)
            crowd.waiting = False
            await asyncio.gather(*producers)
            async with asyncio.timeout(2 * PATIENCE_S):
                while value_of(connection, "SELECT count(*) FROM jobs"):
                    assert none_is_wrong(connection)
                    await asyncio.sleep(0.05)
            assert none_is_wrong(connection)
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
        for worker in workers:
            assert worker.cancelled(), worker.exception()
        assert crowd.stored <= crowd.done.keys() | crowd.unknown
        assert max(crowd.done.values()) == 1
    finally:
        for server in crowd.servers:
            await server.kill()
