"""Schedules under SIGKILL: each time fires at most once, and missed times fire once."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import httpx
import pytest
from conformance.client import Client, new_job
from conformance.streams import PATIENCE_S
from process.server import ServerProcess
from tiers import sizes

from .crons import Look, Seen, breaches, look
from .lives import seed

BEATS = {f"every{n}-{i:02}": f"*/{n} * * * * *" for n in (1, 2) for i in range(60)}
LARGE = "x" * 700
"""Longer than what lies in a job's row: a firing takes several statements."""


def group(priority: int) -> dict[str, object]:
    """All entries, their jobs of one priority."""
    return {
        "entries": [
            {
                "name": name,
                "expression": expression,
                "job": new_job(queue="beats", type=name, payload=LARGE, priority=priority),
            }
            for name, expression in BEATS.items()
        ]
    }


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def change_meanwhile(client: Client, random: Random) -> None:
    """Replace the group by itself, but for its jobs, until the server is gone."""
    try:
        while True:
            await asyncio.sleep(random.uniform(0, 0.3))
            await client.call("PUT", "/crons/beats", group(random.randint(0, 9)))
    except (httpx.HTTPError, OSError, EOFError):
        pass


async def live(root: Path, random: Random, *, change: bool) -> tuple[int, int]:
    """One life that ends by a kill, mostly while entries fire: from when to when."""
    born = now_ms()
    server = await ServerProcess.spawn(root)
    if random.random() < 0.2:
        await asyncio.sleep(random.uniform(0.2, 0.7))  # it dies while it starts
        await server.kill()
        return born, now_ms()
    await server.listening()
    async with server.client() as client:
        changing = asyncio.create_task(change_meanwhile(client, random)) if change else None
        until = now_ms() // 1000 * 1000 + random.choice((1000, 2000)) + random.uniform(0, 60)
        await asyncio.sleep(max(until - now_ms(), 0) / 1000)
        await server.kill()
        died = now_ms()
        if changing is not None:
            await changing
    return born, died


@sizes("kills", 4, 300)
async def test_each_time_fires_once_whatever_is_killed(kills: int, tmp_path: Path) -> None:
    root, random = tmp_path / "data", Random(seed())
    server = await ServerProcess.spawn(root)
    await server.listening()
    async with server.client() as client:
        assert (await client.call("PUT", "/crons/beats", group(0))).status == 200
    await server.kill()
    before = first = look(root / "zq.db")
    for _ in range(kills):
        born, died = await live(root, random, change=random.random() < 0.5)
        after = look(root / "zq.db")
        assert [*breaches(before, after, born, died)] == []
        before = after
    # Nothing has stopped: each of them goes on.
    assert all(before[name].next_at > 0 for name in first)
    born = now_ms()
    server = await ServerProcess.spawn(root)
    await server.listening()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            seen = look(root / "zq.db")
            if all(seen[name].next_at > before[name].next_at for name in first):
                break
            await asyncio.sleep(0.1)
    await server.kill()
    last = look(root / "zq.db")
    assert [*breaches(before, last, born, now_ms())] == []
    assert sum(len(each.fired) for each in last.values()) >= kills * len(BEATS) / 4, "few fired"


BORN, DIED = 10_000, 13_500
WAS: Look = {"e": Seen(8_010, 9_000, 1000, (7_010, 8_010))}
FINE = Seen(13_020, 14_000, 1000, (7_010, 8_010, 10_700, 11_010, 12_011, 13_020))

BREACHES: dict[str, Callable[[Seen], Seen]] = {
    "is gone": lambda seen: seen._replace(fired=seen.fired[1:]),
    "it moved on at": lambda seen: seen._replace(fired=seen.fired[:-1]),
    "its last job is of": lambda seen: seen._replace(last_at=12_011),
    "is none of its times": lambda seen: seen._replace(next_at=14_020),
    "5 jobs for 4 times": lambda seen: seen._replace(
        fired=(*seen.fired[:3], 10_710, *seen.fired[3:])
    ),
    "4 jobs, but from 9000 to 9000": lambda seen: seen._replace(next_at=9_000),
}


def test_a_life_as_it_should_be_has_no_breach() -> None:
    assert [*breaches(WAS, {"e": FINE}, BORN, DIED)] == []


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_found(breach: str) -> None:
    found = [*breaches(WAS, {"e": BREACHES[breach](FINE)}, BORN, DIED)]
    assert any(breach in text for text in found), found
