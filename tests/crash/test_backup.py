"""A backup amid mixed load, restored: what was acknowledged before is there, what had ended before
does not come back, and nothing is in it that happened later."""

import dataclasses
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
from process.server import WITH_ADMIN, ServerProcess
from tiers import sizes

from zq import instance

from .actors import Notebook
from .checker import RULES
from .history import Copied, Delivery, Enqueue, Event, History, Outcome, Start, now
from .keeper import Keeper
from .lives import SERVER_ALONE, check_file, finish, live_and_die, seed, some_time, take_stock
from .world import sort

FLAGS = (*WITH_ADMIN, "--max-wal", "16MiB")


@asynccontextmanager
async def serving(root: Path, notebook: Notebook) -> AsyncIterator[ServerProcess]:
    """A server with an admin listener, whose start is written down."""
    start = now()
    server = await ServerProcess.spawn(None, *FLAGS, "--root-dir", str(root))
    try:
        await server.listening()
        notebook.add(Start(start=start, end=now()))
        yield server
    finally:
        await server.kill()


SURELY_MS = 5_000.0
"""A tick that began so long before a copy is in it."""


def as_copied(history: History, copied: Copied) -> list[Event]:
    """What a copy of one moment may know of a history."""
    known: list[Event] = []
    taken: set[str] = set()
    """Jobs that were taken at about that moment: nobody knows whether the copy has them waiting."""
    for event in history:
        if event.end <= copied.start:
            known.append(event)
        elif isinstance(event, Delivery):
            # It began when the server took the job, and ended when the frame came.
            if event.start < copied.start - SURELY_MS:
                known.append(dataclasses.replace(event, end=copied.end))
            elif event.start <= copied.end:
                taken.add(event.job)
        elif event.start > copied.end:
            continue
        elif not hasattr(event, "outcome"):
            known.append(dataclasses.replace(event, end=min(event.end, copied.end)))
        elif event.outcome is not Outcome.REFUSED:
            # It was done before that moment or after it.
            end = min(event.end, copied.end)
            operation: Any = event
            known.append(dataclasses.replace(operation, outcome=Outcome.UNKNOWN, end=end))
    return [*(_doubted(event, taken) for event in known), copied]


def _doubted(event: Event, jobs: set[str]) -> Event:
    """An enqueue of which the rules are to assume nothing, if it is of one of these jobs."""
    if isinstance(event, Enqueue) and event.job in jobs:
        return dataclasses.replace(event, outcome=Outcome.UNKNOWN)
    return event


@sizes("cycles", 1, 30)
async def test_a_backup_amid_mixed_load_keeps_every_promise(tmp_path: Path, cycles: int) -> None:
    random = Random(seed())
    for cycle in range(cycles):
        await back_up_and_restore(tmp_path / str(cycle), random)


async def back_up_and_restore(folder: Path, random: Random) -> None:
    notebook, after = Notebook(), Notebook(1_000_000)
    archives: list[bytes] = []
    copies: list[Copied] = []
    async with serving(folder / "data", notebook) as server:
        url = await server.admin_url()
        wal = folder / "data" / "zq.db-wal"
        async with server.client() as client:
            await Keeper(client, notebook, random).furnish()

        async def back_up(notebook: Notebook, random: Random) -> None:
            await some_time(notebook, random)
            async with aiohttp.ClientSession(trust_env=False) as http:
                start = now()
                async with http.post(f"{url}/backup") as answer:
                    # The copy is whole before the first byte is sent.
                    copies.append(Copied(start=start, end=now()))
                    archives.append(await answer.read())
            await some_time(notebook, random)
            assert wal.stat().st_size < 16 * 2**20

        await live_and_die(server, notebook, random, SERVER_ALONE, back_up)

    restored = folder / "restored"
    instance.restore(io.BytesIO(archives[0]), restored, lambda _done, _all: None)
    assert instance.examine(restored).damage == []
    assert check_file(restored)
    async with serving(restored, after) as server:
        async with server.client() as client:
            await take_stock(client, after)
        await finish(server, after)
    history = [*as_copied(notebook.history, copies[0]), *after.history]
    world = sort(History(history))
    breaches = [breach for rule in RULES for breach in rule(world)]
    assert not breaches, breaches[:10]
