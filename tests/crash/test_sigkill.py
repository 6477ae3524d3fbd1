"""SIGKILL under mixed load, again and again on one directory: what was promised is kept.

`CRASH_SEED` repeats a run's choices, `CRASH_CYCLES` sets the number of kills.
"""

import asyncio
import os
import shutil
import signal
import sqlite3
import time
from collections import Counter
from contextlib import AsyncExitStack
from itertools import chain
from pathlib import Path
from random import Random
from typing import NamedTuple

from conformance.client import MSGPACK, Client
from conformance.streams import PATIENCE_S
from process.server import ServerProcess, running

from .checker import violations
from .history import (
    Enqueue,
    Failure,
    History,
    Inspection,
    Kill,
    Listed,
    Listing,
    Outcome,
    Start,
    Success,
    now,
)
from .load import (
    MOST_PUT_ASIDE,
    PRODUCERS,
    WORKERS,
    Actor,
    Notebook,
    Producer,
    Worker,
    WorkerKind,
)
from .mortal import Mortal

PAGE = 2000

IN_FLIGHT_LIMIT = "--global-in-flight-limit"

DELIVERIES = """
    SELECT coalesce(payload, body) ->> 'name', deliveries
    FROM jobs LEFT JOIN payloads ON job_id = id
"""


class Victims(NamedTuple):
    """How many workers are killed in a life, and whether together with the server or before it."""

    workers: int
    together: bool


VICTIMS = (Victims(0, True), Victims(2, True), Victims(2, False))

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    # Without an fsync only a power cut may lose something, a killed process nothing.
    {"--default-commit-mode": "buffered"},
    # Less than all windows together, more than all workers together put aside.
    {IN_FLIGHT_LIMIT: str((len(WORKERS) + 2) * (MOST_PUT_ASIDE + 5))},
)
"""What a server may be started with; each life draws one."""


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
                unique_key=job.get("unique_key", ""),
            )
        page = await client.jobs(limit=PAGE, **{"from": page[-1]["id"]})
    notebook.add(Listing(start=start, end=now(), jobs=jobs, count=await client.count()))


async def live_and_die(server: ServerProcess, notebook: Notebook, random: Random) -> None:
    """Let all clients loose on a server; kill workers, the server, or both amid their work."""
    victims = random.choice(VICTIMS)
    async with AsyncExitStack() as clients, asyncio.TaskGroup() as running_actors:
        actors: list[Actor] = []
        for wire in PRODUCERS:
            client = await clients.enter_async_context(server.client(wire))
            actors.append(Producer(client, notebook, Random(random.random())))
        for kind in WORKERS:
            client = await clients.enter_async_context(server.client(kind.wire))
            actors.append(Worker(client, notebook, Random(random.random()), kind))
        mortals = [
            await Mortal.spawn(server.port, number, random.random(), notebook)
            for number in random.sample(range(len(WORKERS)), victims.workers)
        ]
        for actor in actors:
            running_actors.create_task(actor.run())
        await some_time(notebook, random)
        if not victims.together:
            await asyncio.gather(*(mortal.kill() for mortal in mortals))
            await some_time(notebook, random)
        start = now()
        await asyncio.gather(server.kill(), *(mortal.kill() for mortal in mortals))
        notebook.add(Kill(start=start, end=now()))
        for actor in actors:
            actor.alone = True


async def some_time(notebook: Notebook, random: Random) -> None:
    async with asyncio.timeout(3 * PATIENCE_S):
        await notebook.grows_by(random.randint(100, 1_000))
    await asyncio.sleep(random.uniform(0, 0.02))  # anywhere in a tick


async def die_young(root: Path, random: Random) -> None:
    """Kill a server while it starts and recovers."""
    server = await ServerProcess.spawn(root)
    await asyncio.sleep(random.uniform(0, 0.4))
    await server.kill()


async def finish(server: ServerProcess, notebook: Notebook) -> None:
    """Work off all that is left: what is listed can also be delivered."""
    everything = WorkerKind(MSGPACK, 500, ())
    async with server.client(MSGPACK) as client, asyncio.timeout(3 * PATIENCE_S):
        await Worker(client, notebook, Random(), everything).work_off()


def inspect_file(root: Path, copy: Path, notebook: Notebook) -> None:
    """SQLite's own check of what the killed server left, its log included; and who had what."""
    start = now()
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*-shm"))
    database = sqlite3.connect(copy / "zq.db")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    deliveries = dict(database.execute(DELIVERIES))
    database.close()
    notebook.add(Inspection(start=start, end=now(), deliveries=deliveries))
    shutil.rmtree(copy)


def assert_mixed(history: History, cycles: int) -> None:
    """The run has tried what it is for."""
    kinds = Counter(
        (type(event), event.outcome)
        for event in history
        if isinstance(event, Enqueue | Success | Failure)
    )
    for kind in (Enqueue, Success, Failure):
        assert kinds[kind, Outcome.OK] > cycles
    assert kinds[Enqueue, Outcome.REFUSED] > 0, "no duplicates"
    assert kinds[Success, Outcome.REFUSED] > 0, "no acknowledgement came too late"
    assert kinds[Enqueue, Outcome.UNKNOWN] + kinds[Success, Outcome.UNKNOWN] > 0, "nothing was cut"
    assert sum(isinstance(event, Kill) for event in history) == cycles


def judge(history: History, folder: Path) -> None:
    """Fail with what the queue has broken, and keep the history for a person to read."""
    breaches = violations(history)
    if breaches:
        file = folder / "history.jsonl"
        history.save(file)
        raise AssertionError("\n".join([f"{len(breaches)} breaches in {file}", *breaches[:10]]))


async def live_through(root: Path, notebook: Notebook, random: Random, cycles: int) -> None:
    """Some lives of a server on one directory, the last of which ends well."""
    copy = root.with_name("copy")
    for _ in range(cycles):
        settings = random.choice(SETTINGS)
        start = now()
        async with running(root, *chain.from_iterable(settings.items())) as server:
            limit = int(settings.get(IN_FLIGHT_LIMIT, 0))
            notebook.add(Start(start=start, end=now(), in_flight_limit=limit))
            async with server.client() as client:
                await take_stock(client, notebook)
            await live_and_die(server, notebook, random)
        inspect_file(root, copy, notebook)
        if random.random() < 0.3:
            await die_young(root, random)
            inspect_file(root, copy, notebook)
    async with running(root) as server:
        async with server.client() as client:
            await take_stock(client, notebook)
            await finish(server, notebook)
            await take_stock(client, notebook)
        server.signal(signal.SIGTERM)
        assert await server.exited() == 0


async def test_nothing_acknowledged_is_lost_and_nothing_done_comes_back(tmp_path: Path) -> None:
    seed = os.environ.get("CRASH_SEED") or str(time.time_ns())
    cycles = int(os.environ.get("CRASH_CYCLES") or 30)
    print(f"repeat with CRASH_SEED={seed} CRASH_CYCLES={cycles}")
    notebook = Notebook()
    try:
        await live_through(tmp_path / "data", notebook, Random(seed), cycles)
    finally:
        judge(notebook.history, tmp_path)  # also where the run itself could not go on
    assert_mixed(notebook.history, cycles)
