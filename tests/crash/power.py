"""Power cuts under mixed load: the page cache is lost, and everything that was not synced."""

import asyncio
from collections import Counter
from errno import EINVAL, ENOSYS
from functools import partial
from random import Random
from typing import NamedTuple

from conformance import streams
from process.server import ServerProcess, running

from .actors import Notebook
from .disk import Disk, Refusal
from .history import Enqueue, Kill, Listing, Outcome, now
from .keeper import Keeper
from .lives import (
    SERVER_ALONE,
    check_file,
    finish,
    life,
    live_and_die,
    some_time,
    take_stock,
)
from .producer import Producer

SURVIVES = (0.0, 0.0, 0.3, 0.9)
"""How much of what was not synced a cut leaves; most often nothing."""


FLUSHES: dict[str, Refusal | None] = {
    "asked of the kernel": None,
    "in a thread, as the kernel has no AIO": Refusal("setup", ENOSYS),
    "in a thread, as the file system cannot flush so": Refusal("submit", EINVAL),
}
"""The ways in which a server flushes, and how it comes to each."""


async def cut_again_and_again(
    disk: Disk, notebook: Notebook, random: Random, cycles: int, most: int = 1_000
) -> Counter[str]:
    """Some lives on one disk, each ended by a power cut but for the last.

    A cut comes after up to `most` events. Each life flushes in a way of its own. Returns how many
    lives ended in each way.
    """
    flushed: Counter[str] = Counter()
    for cycle in range(cycles):
        way = random.choice(sorted(FLUSHES))
        flushed[way] += 1
        env = disk.environment(refuses=FLUSHES[way])
        async with life(disk.root, notebook, env=env) as server:
            async with server.client() as client:
                await take_stock(client, notebook)
                if not cycle:
                    await Keeper(client, notebook, random).furnish()
            amid = partial(some_time, most=most)
            await live_and_die(server, notebook, random, SERVER_ALONE, amid)
        disk.cut_power(random.choice(SURVIVES), random)
        check_file(disk.root)
        if random.random() < 0.3:
            await _cut_while_it_starts(disk, random)
    async with life(disk.root, notebook, env=disk.environment()) as server:
        await finish(server, notebook)
    return flushed


async def _cut_while_it_starts(disk: Disk, random: Random) -> None:
    refuses = FLUSHES[random.choice(sorted(FLUSHES))]
    server = await ServerProcess.spawn(disk.root, env=disk.environment(refuses=refuses))
    await asyncio.sleep(random.uniform(0.1, 0.5))
    await server.kill()
    disk.cut_power(random.choice(SURVIVES), random)
    check_file(disk.root)


class Loss(NamedTuple):
    """What a power cut has taken of acknowledged enqueues, and how many came before those."""

    jobs: int
    window_ms: float
    """Age of the oldest of them at the cut; 0 where nothing is lost."""
    kept: int
    is_tail: bool
    """Whether nothing older was lost than anything that was kept."""


async def lose_a_tail(disk: Disk, random: Random, seconds: float, pause: float = 0.0) -> Loss:
    """Enqueue for a while without waiting for the disk, then cut the power.

    `pause` seconds lie between two enqueues. A busy machine needs longer for a first sync.
    """
    log = disk.shadow / "files" / "zq.db-wal"
    notebook = Notebook()
    flags = ("--default-commit-mode", "buffered")
    environment = disk.environment()
    async with running(disk.root, *flags, env=environment) as server, server.client() as client:
        producer = Producer(client, notebook, random)
        task = asyncio.create_task(_enqueue(producer, pause))
        async with asyncio.timeout(streams.PATIENCE_S):
            await notebook.grows_by(1)
        before = log.stat().st_size
        await asyncio.sleep(seconds)
        async with asyncio.timeout(streams.PATIENCE_S):
            while log.stat().st_size <= before:
                await streams.pause()
            await notebook.grows_by(5)
        notebook.add(Kill(start=now(), end=now()))
        await server.kill()
        await task
    disk.cut_power(0.0, random)
    async with running(disk.root, env=environment) as server, server.client() as client:
        await take_stock(client, after := Notebook())
    return _loss(notebook, after)


async def _enqueue(producer: Producer, pause: float) -> None:
    while not producer.alone:
        await producer.enqueue()
        await asyncio.sleep(pause)


def _loss(before: Notebook, after: Notebook) -> Loss:
    cut = next(event.start for event in before.history if isinstance(event, Kill))
    (listing,) = after.history
    assert isinstance(listing, Listing)
    stored = [e for e in before.history if isinstance(e, Enqueue) and e.outcome is Outcome.OK]
    lost = [enqueue for enqueue in stored if enqueue.job not in listing.jobs]
    kept = [enqueue for enqueue in stored if enqueue.job in listing.jobs]
    oldest = min((enqueue.end for enqueue in lost), default=cut)
    last_kept = max((enqueue.id for enqueue in kept), default="")
    return Loss(
        jobs=len(lost),
        window_ms=cut - oldest,
        kept=len(kept),
        is_tail=all(enqueue.id > last_kept for enqueue in lost),
    )
