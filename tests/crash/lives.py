"""Lives of a server: the time between a start and a death, whatever the cause."""

import asyncio
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from conformance.client import MSGPACK, Client
from conformance.streams import PATIENCE_S
from process.server import ServerProcess, running

from .actors import Actor, Notebook
from .checker import violations
from .claimer import Claimer
from .history import NEVER, History, Inspection, Kill, Listed, Listing, Start, now
from .keeper import Keeper
from .load import WORKERS, Worker, WorkerKind, workers
from .mortal import Mortal
from .producer import PRODUCERS, Producer
from .reviver import Reviver

PAGE = 2000

CALLINGS: tuple[type[Actor], ...] = (Claimer, Claimer, Claimer, Keeper, Reviver)
"""Who is there beside producers and streams."""

DELIVERIES = """
    SELECT coalesce(payload, body) ->> 'name', deliveries
    FROM jobs LEFT JOIN payloads ON job_id = id
"""


class Victims(NamedTuple):
    """How many workers are killed in a life, and whether together with the server or before it."""

    workers: int
    together: bool


SERVER_ALONE = Victims(0, True)


def seed() -> str:
    """What repeats a run's choices: `CRASH_SEED`, or a new one; printed for whom it concerns."""
    chosen = os.environ.get("CRASH_SEED") or str(time.time_ns())
    print(f"repeat with CRASH_SEED={chosen}")
    return chosen


@asynccontextmanager
async def life(
    root: Path,
    notebook: Notebook,
    *flags: str,
    env: Mapping[str, str] | None = None,
    limit: int = 0,
) -> AsyncIterator[ServerProcess]:
    """A server whose start is written down, and how many jobs it lets be in flight."""
    start = now()
    async with running(root, *flags, env=env) as server:
        notebook.add(Start(start=start, end=now(), in_flight_limit=limit))
        yield server


async def take_stock(client: Client, notebook: Notebook) -> None:
    """Write down every job that there is, page by page."""
    start = now()
    jobs: dict[str, Listed] = {}
    page = await client.jobs(limit=PAGE)
    while page:
        for job in page:
            name = job["payload"]["name"]
            assert name not in jobs, f"{name} is listed twice"
            jobs[name] = Listed(
                id=job["id"],
                status=job["status"],
                attempts=job["attempts"],
                queue=job["queue"],
                unique_key=job.get("unique_key", ""),
                until=job.get("lease_until", NEVER),
                result=job.get("result", ""),
                reason=job.get("reason", ""),
            )
        page = await client.jobs(limit=PAGE, **{"from": page[-1]["id"]})
    notebook.add(Listing(start=start, end=now(), jobs=jobs, count=await client.count()))


async def some_time(notebook: Notebook, random: Random, most: int = 1_000) -> None:
    """Let up to so many events happen."""
    async with asyncio.timeout(3 * PATIENCE_S):
        await notebook.grows_by(random.randint(100, most))
    await asyncio.sleep(random.uniform(0, 0.02))  # anywhere in a tick


async def live_and_die(
    server: ServerProcess,
    notebook: Notebook,
    random: Random,
    victims: Victims,
    amid: Callable[[Notebook, Random], Awaitable[None]] = some_time,
) -> None:
    """Let all clients loose on a server; kill workers, the server, or both `amid` their work.

    `amid` waits until it is time for a kill.
    """
    async with AsyncExitStack() as clients, asyncio.TaskGroup() as running_actors:
        actors: list[Actor] = []
        for wire in PRODUCERS:
            client = await clients.enter_async_context(server.client(wire))
            actors.append(Producer(client, notebook, Random(random.random())))
        for kind in workers(random):
            client = await clients.enter_async_context(server.client(kind.wire))
            actors.append(Worker(client, notebook, Random(random.random()), kind))
        for calling in CALLINGS:
            client = await clients.enter_async_context(server.client(random.choice(PRODUCERS)))
            actors.append(calling(client, notebook, Random(random.random())))
        mortals = [
            await Mortal.spawn(server.port, number, random.random(), notebook)
            for number in random.sample(range(len(WORKERS)), victims.workers)
        ]
        for actor in actors:
            running_actors.create_task(actor.run())
        await amid(notebook, random)
        if not victims.together:
            await asyncio.gather(*(mortal.kill() for mortal in mortals))
            await amid(notebook, random)
        start = now()
        await asyncio.gather(server.kill(), *(mortal.kill() for mortal in mortals))
        notebook.add(Kill(start=start, end=now()))
        for actor in actors:
            actor.alone = True


async def finish(server: ServerProcess, notebook: Notebook) -> None:
    """Work off all that is left, for what is listed can also be delivered; then end well."""
    everything = WorkerKind(MSGPACK, 500, ())
    async with server.client(MSGPACK) as client, asyncio.timeout(3 * PATIENCE_S):
        await take_stock(client, notebook)
        await Keeper(client, notebook, Random()).open_all()
        await Worker(client, notebook, Random(), everything).work_off()
        await take_stock(client, notebook)
    server.signal(signal.SIGTERM)
    assert await server.exited() == 0


def check_file(root: Path) -> dict[str, int]:
    """SQLite's own check of what a dead server left, its log included; deliveries by job.

    A server that died at its first start may have left no tables yet.
    """
    copy = root.with_name("copy")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*-shm"))
    database = sqlite3.connect(copy / "zq.db")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    (version,) = database.execute("PRAGMA user_version").fetchone()
    deliveries = dict(database.execute(DELIVERIES)) if version else {}
    database.close()
    shutil.rmtree(copy)
    return deliveries


def inspect_file(root: Path, notebook: Notebook) -> None:
    """Check what a killed server left, and write down who had what."""
    start = now()
    deliveries = check_file(root)
    notebook.add(Inspection(start=start, end=now(), deliveries=deliveries))


def judge(history: History, folder: Path) -> None:
    """Fail with what the queue has broken, and keep the history for a person to read."""
    breaches = violations(history)
    if breaches:
        file = folder / "history.jsonl"
        history.save(file)
        raise AssertionError("\n".join([f"{len(breaches)} breaches in {file}", *breaches[:10]]))
