"""Hosts that are lost for good: that of a server, and that of PostgreSQL, whose standby takes over.

These take minutes, or need root and `ip`, so they are for the long tier.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress

import httpx
import psycopg
import pytest
from conformance.client import Client
from conformance.streams import PATIENCE_S, pause
from outbox.postgres import Postgres, postgres
from process.network import HERE, THERE, Network
from process.server import clean_environment

from store.postgres.crowd import all_jobs, served

pytestmark = pytest.mark.long

EXPOSED = ("--host", "0.0.0.0", "--insecure")

FENCED = 75


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


def over_the_cable(address: str) -> str:
    return address.partition("?")[0].replace("zq@", f"zq@{HERE}")


async def test_the_jobs_of_a_lost_host_are_ready_at_another(network: Network) -> None:
    """No FIN and no RST comes: its heart stops, so its connections are ended."""
    with postgres(listens=HERE) as database:
        address = database.new_database()
        lost = served(over_the_cable(address), "--servers", "2", *EXPOSED, before=network.far_away)
        async with served(address, "--servers", "2") as left, lost as far, left.client() as one:
            async with far.client(host=THERE) as other:
                held = await other.take(prefetch=1)
                stored = await one.enqueue()
                assert (await held.job())["id"] == stored["id"]
                again = await one.take(prefetch=1)
                network.cut()
                assert (await again.job())["id"] == stored["id"]
                network.mend()
                assert await far.exited() == FENCED
            assert (await one.job(stored["id"]))["status"] == "in_flight"


async def test_a_server_learns_that_the_host_of_its_database_is_lost(network: Network) -> None:
    """Without the settings of the address, its tick would wait for a quarter of an hour."""
    with postgres(listens=HERE) as database:
        address = over_the_cable(database.new_database())
        async with served(address, before=network.far_away) as server:
            words = ("push", "q", "t", "--url", f"http://127.0.0.1:{server.port}")
            network.cut()
            process = await asyncio.create_subprocess_exec(
                *(*network.far_away, sys.executable, "-m", "zq.cli", *words),
                env=clean_environment(),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            async with asyncio.timeout(3 * PATIENCE_S):
                told, _ = await process.communicate()
            assert process.returncode
            assert b"database" in told, told


async def produce(client: Client, stored: set[str]) -> None:
    """Enqueue until cancelled. Refusals and lost answers are tried again, as new jobs."""
    while True:
        with suppress(httpx.HTTPError):
            reply = await client.post(
                "/jobs/bulk", {"jobs": [{"queue": "q", "type": "t", "payload": 1}] * 5}
            )
            if reply.status == 201:
                stored.update(job["id"] for job in reply.doc["jobs"])
            else:
                assert reply.status == 503, reply
        await pause()


def of_both(address: str, copy: Postgres) -> str:
    """An address that names the copy as well."""
    return f"{address},{copy.socket}"


async def test_nothing_acknowledged_is_lost_when_a_synchronous_standby_takes_over() -> None:
    with postgres(flushes=True) as primary:
        address = primary.new_database()
        with primary.standby() as copy:
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
                connection.execute("SELECT pg_reload_conf()")
            stored: set[str] = set()
            async with served(of_both(address, copy)) as server, server.client() as client:
                producers = [asyncio.create_task(produce(client, stored)) for _ in range(8)]
                for wanted in (200, 400):
                    async with asyncio.timeout(PATIENCE_S):
                        while len(stored) < wanted:
                            await pause()
                    if wanted == 200:
                        await asyncio.to_thread(primary.kill)
                        await asyncio.to_thread(copy.promote)
                for producer in producers:
                    producer.cancel()
                await asyncio.wait(producers)
                kept = {job["id"] async for job in all_jobs(client)}
                assert stored <= kept


def has_all(address: str) -> bool:
    """True if the standby of a database has flushed all that was committed there."""
    asked = "SELECT flush_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"
    with psycopg.connect(address) as connection:
        found = connection.execute(asked).fetchone()
    return found is not None and bool(found[0])


async def test_a_server_ends_whose_commits_an_asynchronous_standby_has_not() -> None:
    """It goes by what it has acknowledged, so it must not go on with a copy that lacks it."""
    with postgres(flushes=True) as primary:
        address = primary.new_database()
        with primary.standby() as copy:
            async with served(of_both(address, copy)) as server, server.client() as client:
                kept = await client.enqueue()
                async with asyncio.timeout(PATIENCE_S):
                    while not await asyncio.to_thread(has_all, address):
                        await pause()
                copy.kill()
                lost = await client.enqueue()
                await asyncio.to_thread(primary.kill)
                await asyncio.to_thread(copy.start, "-c listen_addresses=")
                await asyncio.to_thread(copy.promote)
                with suppress(httpx.HTTPError):
                    await client.post("/jobs", {"queue": "q", "type": "t", "payload": 1})
                assert await server.exited() != 0
                assert "has lost commits" in " ".join(server.messages)
            async with served(of_both(address, copy)) as server, server.client() as client:
                assert await client.exists(kept["id"])
                assert not await client.exists(lost["id"])
