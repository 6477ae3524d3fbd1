"""PostgreSQL without space, for its tables or its log. Needs root for a small file system."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import pytest
from conformance.client import Client, Reply
from conformance.streams import PATIENCE_S, pause
from outbox.postgres import Postgres, postgres

from store.on_postgres import WRONG_COUNTS
from store.postgres.crowd import all_jobs, served
from zq.store.postgres.connection import SESSION, connect
from zq.store.postgres.owning import value_of

pytestmark = pytest.mark.long

JOBS = {"jobs": [{"queue": "q", "type": "t", "payload": "x" * 400}] * 50}


@contextmanager
def small(place: Path, megabytes: int) -> Iterator[Path]:
    """A file system of so many MiB at a place."""
    place.mkdir()
    options = f"size={megabytes}m,uid={place.parent.stat().st_uid},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Take all space that is left there: the file that has it."""
    filler = place / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return filler


async def enqueue(client: Client, stored: set[str]) -> Reply | None:
    """Enqueue fifty jobs: the answer, if there is one."""
    with suppress(httpx.HTTPError):
        reply = await client.post("/jobs/bulk", JOBS)
        if reply.status == 201:
            stored.update(job["id"] for job in reply.doc["jobs"])
        return reply
    return None


async def succeed(client: Client, jobs: set[str]) -> set[int]:
    """Acknowledge jobs: the statuses of the answers."""
    return {(await client.post(f"/jobs/{job}/success", None)).status for job in jobs}


def none_is_wrong(address: str) -> bool:
    with connect(address, SESSION) as connection:
        return value_of(connection, WRONG_COUNTS) == 0


async def test_jobs_are_refused_while_the_tables_have_no_space() -> None:
    """PostgreSQL keeps no reserve: an acknowledgement may be refused, and passes later."""
    with postgres() as server, small(server.socket / "small", 32) as place:
        address = server.new_database()
        name = address.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(server.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
            connection.execute(f"ALTER DATABASE {name} SET TABLESPACE small".encode())
        stored: set[str] = set()
        async with served(address) as zq, zq.client() as client:
            await enqueue(client, stored)
            stream = await client.take(prefetch=20)
            done = {(await stream.job())["id"] for _ in range(20)}
            filler = fill(place)
            async with asyncio.timeout(PATIENCE_S):
                while (refused := await enqueue(client, stored)) is None or refused.status == 201:
                    await pause()
            assert (refused.status, refused.headers["zq-error"]) == (507, "storage_full")
            assert await succeed(client, done) <= {204, 507}
            filler.unlink()
            assert await succeed(client, done) <= {204, 404}
            async with asyncio.timeout(PATIENCE_S):
                while (taken := await enqueue(client, stored)) is None or taken.status != 201:
                    await pause()
            assert {job["id"] async for job in all_jobs(client)} == stored - done
        assert none_is_wrong(address)


def move_log(server: Postgres, place: Path) -> None:
    """Have PostgreSQL write its log to a place."""
    server.kill()
    log = server.socket / "data" / "pg_wal"
    shutil.copytree(log, place / "pg_wal")
    shutil.rmtree(log)
    log.symlink_to(place / "pg_wal")
    for path in (place / "pg_wal", *(place / "pg_wal").rglob("*")):
        os.chown(path, place.stat().st_uid, -1)
    server.start("-c listen_addresses=")


async def test_nothing_acknowledged_is_lost_when_the_log_has_no_space() -> None:
    """PostgreSQL ends then. Who looks after it makes room, and starts it again."""
    with postgres(flushes=True) as server, small(server.socket / "small", 64) as place:
        address = server.new_database()
        move_log(server, place)
        stored: set[str] = set()
        async with served(address) as zq, zq.client() as client:
            await enqueue(client, stored)
            filler = fill(place)
            async with asyncio.timeout(PATIENCE_S):
                while (refused := await enqueue(client, stored)) is None or refused.status == 201:
                    await pause()
            assert refused.status in (503, 507), refused
            filler.unlink()
            async with asyncio.timeout(PATIENCE_S):
                while (taken := await enqueue(client, stored)) is None or taken.status != 201:
                    if not server.is_running():
                        await asyncio.to_thread(server.start, "-c listen_addresses=")
                    await pause()
            kept = {job["id"] async for job in all_jobs(client)}
            assert stored <= kept
        assert none_is_wrong(address)
