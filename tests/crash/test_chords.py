"""Chords under SIGKILL of their workers."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from random import Random

import pytest
from conformance.streams import PATIENCE_S, pause
from process.server import clean_environment
from tiers import sizes

import zq
from zq.client.values import JobQuery
from zq.testing import server

from . import chords

MEMBERS = 4
A_KILL = 3
"""So many chords for each kill: a worker is killed after one to five acknowledgements."""


async def start(url: str, runs: Path) -> asyncio.subprocess.Process:
    paths = str(Path(__file__).parent.parent)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zq.cli", "worker", "crash.chords:app", "-c", "4"),
        *("--log-level", "error", "--stall-limit", "100"),
        env=clean_environment() | {"ZQ_URL": url, "RUNS": str(runs), "PYTHONPATH": paths},
    )


def at_work(runs: Path, workers: Sequence[asyncio.subprocess.Process], otherwise: int) -> int:
    """Which worker has begun the latest run: a kill of one that just starts hits no member."""
    latest = int(runs.read_text().split()[-1])
    found = [number for number, worker in enumerate(workers) if worker.pid == latest]
    return found[0] if found else otherwise


async def stuck() -> int:
    """The worker that has begun the member that does not end: its kill hits that one surely."""
    async with asyncio.timeout(PATIENCE_S):
        while not (begun := chords.runs_of(chords.STUCK)):
            await pause()
    return begun[0]


async def killed(process: asyncio.subprocess.Process) -> None:
    process.kill()
    await process.wait()


@sizes("kills", 3, 300)
async def test_the_end_of_a_chord_is_stored_once_however_workers_die(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    seed = os.environ.get("CRASH_SEED") or str(time.time_ns())
    print(f"repeat with CRASH_SEED={seed}")
    rng = Random(seed)
    runs = tmp_path / "runs"
    monkeypatch.setenv("RUNS", str(runs))
    size = kills * A_KILL
    flows: list[zq.JobFlow] = []
    async with server() as running, chords.app.use(running):
        for n in range(size):
            members = [zq.step(chords.member, n * MEMBERS + each) for each in range(MEMBERS)]
            flows.append(await zq.chord(members, zq.step(chords.end)))
        workers = [await start(running.url, runs) for _ in range(2)]
        try:
            left, until = kills, 1
            async with aclosing(chords.app.events(queue="members", types="completed")) as events:
                async for _ in events:
                    until -= 1
                    if until:
                        continue
                    victim = rng.randrange(len(workers))
                    if left == kills:
                        victim = [worker.pid for worker in workers].index(await stuck())
                    elif rng.random() < 0.7:
                        victim = at_work(runs, workers, victim)
                    await killed(workers[victim])
                    left, until = left - 1, rng.randint(1, 5)
                    if not left:
                        break
                    workers[victim] = await start(running.url, runs)
        finally:
            for worker in workers:
                if worker.returncode is None:
                    await killed(worker)
        await zq.Worker(chords.app, concurrency=4).run_until_idle(60)
        backend = chords.app.backend
        found = (await backend.jobs(JobQuery(queues=("ends",)), limit=2000)).jobs
        waited_for = [await flow.result() for flow in flows]

    assert {job.status for job in found} == {"completed"}
    expected = [[n * MEMBERS + each for each in range(MEMBERS)] for n in range(size)]
    assert sorted(job.result for job in found) == waited_for == expected
    assert len(runs.read_text().splitlines()) > size * MEMBERS, "no kill has hit a member"
