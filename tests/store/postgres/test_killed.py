"""Servers that share a database, and PostgreSQL, are disrupted at random under load.

Nothing is lost or done twice, counts agree with the rows, and a group has one job under way.
"""

import asyncio
import os
from collections import Counter
from contextlib import suppress
from random import Random
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any

import httpx
import psycopg
import pytest
from conformance.client import Client, new_job
from conformance.streams import PATIENCE_S, StreamEnded, pause
from outbox.postgres import Postgres, postgres
from process.server import ServerProcess

from store.on_postgres import WRONG_COUNTS
from zq.store.errors import StoreAway
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.owning import value_of

FLAGS = ("serve", "--port", "0", "--no-admin", "--log-format", "json", "--servers", "8")

SERVERS = 3

IN_BETWEEN = 10
"""So many jobs are done between two disruptions."""

AHEAD = 150
"""So many jobs wait at most, about."""

IDLE_S = 5
"""A worker looks elsewhere that has got nothing for so long."""

GONE = (httpx.HTTPError, StreamEnded, TimeoutError)
"""What a client meets whose server is killed, or that waits for nothing."""

KINDS = (
    *({"queue": "plain"}, {"queue": "other"}),
    {"queue": "plain", "unique_key": "k", "unique_while": "active"},
    {"queue": "grouped", "group": "g"},
)
"""Ticks of all but the last one run beside each other."""

TAKEN: tuple[dict[str, Any], ...] = (
    {},
    {"queue": "plain"},
    {"queue": "plain,other"},
    {"queue": "grouped"},
)
"""From which queues a worker takes."""


CROWDED_GROUPS = """
    SELECT count(*) FROM (SELECT FROM jobs WHERE status = 2 AND group_id IS NOT NULL
        GROUP BY queue, group_id HAVING count(*) > 1) AS crowded
"""
"""How many groups have more than one job under way."""


class Crowd:
    """Some servers, each in the place of one that has ended, and the clients of all."""

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
        self.address = address

    async def revive(self) -> None:
        """Start servers in the places of those that have ended, as a supervisor does."""
        for place in range(SERVERS):
            while len(self.servers) == place or self.servers[place].has_ended:
                server = await ServerProcess.spawn(None, *FLAGS, "--store", self.address)
                if await server.starts():
                    self.servers[place : place + 1] = [server]

    async def produce(self) -> None:
        while self.waiting:
            with suppress(*GONE):
                async with self._other() as client:
                    while len(self.stored) < self.done.total() + AHEAD and self.waiting:
                        kind = self.random.choice(KINDS)
                        reply = await client.post("/jobs/bulk", {"jobs": [new_job(**kind)] * 5})
                        assert reply.status in (200, 201, 503), reply
                        if reply.status != 503:
                            self.stored.update(job["id"] for job in reply.doc["jobs"])
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


class Laboratory:
    """What befalls a crowd and its PostgreSQL."""

    def __init__(self, crowd: Crowd, server: Postgres, stops: tuple[float, ...]) -> None:
        """A server is stopped for one of these times, in seconds."""
        self.kinds = (
            self.kill_servers,
            self.stop_server,
            self.crash_postgres,
            self.kill_process,
            self.end_connection,
        )
        self._crowd, self._server, self._stops = crowd, server, stops
        self._random = crowd.random

    async def kill_servers(self) -> None:
        """One, two or three at once."""
        places = self._random.sample(range(SERVERS), self._random.randrange(1, SERVERS + 1))
        await asyncio.gather(*(self._crowd.servers[place].kill() for place in places))

    async def stop_server(self) -> None:
        """For so short a time that it goes on, or, in the long tier, so long that others end it."""
        server = self._random.choice(self._crowd.servers)
        server.signal(SIGSTOP)
        await asyncio.sleep(self._random.choice(self._stops))
        server.signal(SIGCONT)

    async def crash_postgres(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(self._random.choice((0.0, 1.0)))
        await asyncio.to_thread(self._server.start, "-c listen_addresses=")

    async def kill_process(self) -> None:
        """PostgreSQL ends all of its processes then, and starts them anew."""
        await self._end_process(SIGKILL)

    async def end_connection(self) -> None:
        await self._end_process(SIGTERM)

    async def _end_process(self, number: int) -> None:
        """End a process of PostgreSQL that has a connection of some server, as soon as one has."""
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(self._try_to_end, number):
                await self._crowd.revive()
                await asyncio.sleep(0.1)

    def _try_to_end(self, number: int) -> bool:
        """End one. False if there is none, or while PostgreSQL starts after the last disruption."""
        try:
            with connect(self._crowd.address, {"application_name": "laboratory"}) as connection:
                found = connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE application_name = 'zq'"
                ).fetchall()
            os.kill(int(str(self._random.choice(found)[0])), number)
        except (StoreAway, psycopg.OperationalError, IndexError, ProcessLookupError):
            return False
        return True


def look(address: str) -> int | None:
    """How many jobs there are; None if PostgreSQL starts just now. Nothing is wrong with them."""
    try:
        with connect(address, SESSION) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert value_of(connection, WRONG_COUNTS) == 0
            assert value_of(connection, CROWDED_GROUPS) == 0
            return int(str(value_of(connection, "SELECT count(*) FROM jobs")))
    except (StoreAway, psycopg.OperationalError):
        return None


@pytest.mark.parametrize(
    ("disruptions", "stops"),
    [(10, (0.2, 0.5)), pytest.param(500, (0.2, 1.0, 8.0), marks=pytest.mark.long)],
)
async def test_nothing_is_lost_or_done_twice_whatever_is_killed(
    disruptions: int, stops: tuple[float, ...]
) -> None:
    seed = os.environ.get("CRASH_SEED", f"{disruptions}")
    with postgres(flushes=True) as server:
        crowd = Crowd(server.new_database(), Random(seed))
        laboratory = Laboratory(crowd, server, stops)
        try:
            await crowd.revive()
            producers = [asyncio.create_task(crowd.produce()) for _ in range(3)]
            workers = [asyncio.create_task(crowd.work()) for _ in range(6)]
            for number in range(disruptions):
                kind = laboratory.kinds[number % len(laboratory.kinds)]
                until = crowd.done.total() + IN_BETWEEN
                async with asyncio.timeout(2 * PATIENCE_S):
                    while crowd.done.total() < until:
                        await asyncio.to_thread(look, crowd.address)
                        await crowd.revive()
                        await asyncio.sleep(0.1)
                await kind()
            crowd.waiting = False
            async with asyncio.timeout(2 * PATIENCE_S):
                await crowd.revive()
                await asyncio.gather(*producers)
                while await asyncio.to_thread(look, crowd.address) != 0:
                    await crowd.revive()
                    await asyncio.sleep(0.1)
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            for worker in workers:
                assert worker.cancelled(), worker.exception()
            assert crowd.stored <= crowd.done.keys() | crowd.unknown
            assert max(crowd.done.values()) == 1
        finally:
            for each in crowd.servers:
                await each.kill()
