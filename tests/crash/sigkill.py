"""SIGKILL of the server, of workers, of both, under mixed load, on one directory."""

import asyncio
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

from process.server import ServerProcess

from .actors import Notebook
from .keeper import Keeper
from .lives import (
    SERVER_ALONE,
    Victims,
    finish,
    inspect_file,
    life,
    live_and_die,
    some_time,
    take_stock,
)
from .load import MOST_PUT_ASIDE, WORKERS

VICTIMS = (SERVER_ALONE, Victims(2, True), Victims(2, False))

IN_FLIGHT_LIMIT = "--global-in-flight-limit"

SETTINGS: tuple[dict[str, str], ...] = (
    {},
    # Without an fsync only a power cut may lose something, a killed process nothing.
    {"--default-commit-mode": "buffered"},
    # Less than all windows together, more than all workers together put aside.
    {IN_FLIGHT_LIMIT: str((len(WORKERS) + 2) * (MOST_PUT_ASIDE + 5))},
)
"""What a server may be started with; each life draws one."""


async def die_young(root: Path, random: Random) -> None:
    """Kill a server while it starts and recovers."""
    server = await ServerProcess.spawn(root)
    await asyncio.sleep(random.uniform(0, 0.4))
    await server.kill()


async def kill_again_and_again(
    root: Path, notebook: Notebook, random: Random, cycles: int, most: int = 1_000
) -> None:
    """Some lives of a server on one directory, the last of which ends well.

    A kill comes after up to `most` events.
    """
    for cycle in range(cycles):
        settings = random.choice(SETTINGS)
        flags = chain.from_iterable(settings.items())
        limit = int(settings.get(IN_FLIGHT_LIMIT, 0))
        async with life(root, notebook, *flags, limit=limit) as server:
            async with server.client() as client:
                await take_stock(client, notebook)
                if not cycle:
                    await Keeper(client, notebook, random).furnish()
            amid = partial(some_time, most=most)
            await live_and_die(server, notebook, random, random.choice(VICTIMS), amid)
        inspect_file(root, notebook)
        if random.random() < 0.3:
            await die_young(root, random)
            inspect_file(root, notebook)
    async with life(root, notebook) as server:
        await finish(server, notebook)
    inspect_file(root, notebook)
