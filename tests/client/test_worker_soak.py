"""Workers of each kind whose handlers end in every way: they live on, and no job is lost.

Each way is gone once by each kind. The long tier goes on for an hour.
"""

import asyncio
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from conformance.streams import PATIENCE_S
from tiers import sizes

import zq
from zq.client.app import App
from zq.client.values import StoredJob, Submission
from zq.testing import server

from . import raising

WORKERS = {
    "threads": ("--concurrency", "6"),
    "processes": ("--concurrency", "3", "--processes", "2"),
    "coroutines": ("--concurrency", "6"),
}
TASKS = {
    "threads": raising.in_thread,
    "processes": raising.in_process,
    "coroutines": raising.in_coroutine,
}
Run = tuple[float, float]
"""When an execution began and ended, in seconds."""


@sizes("seconds", 0, 3600)
async def test_workers_live_on_whatever_their_handlers_raise(tmp_path: Path, seconds: int) -> None:
    runs = Runs(tmp_path / "runs")
    async with (
        server(directory=tmp_path / "data") as running,
        running.app() as app,
        workers(running.url, runs.path) as processes,
    ):
        began, jobs, executions = time.monotonic(), 0, 0
        while jobs == 0 or time.monotonic() < began + seconds:
            ended = await one_round(app)
            jobs += len(ended)
            executions += check(ended, runs.of_round())
            assert [each.returncode for each in processes] == [None] * len(WORKERS)
        print(f"{jobs} jobs, {executions} executions, {sizes_of(processes)}")


async def one_round(app: App) -> list[StoredJob]:
    """Enqueue one job of each way and kind, and return them when all have ended."""
    ids: set[str] = set()
    for queue, task in TASKS.items():
        wanted = list[Submission]()
        for how in (*ways(queue), raising.HANGS):
            options = task.options(timeout=0.2) if how == raising.HANGS else task
            wanted.append(options.job({"args": [how], "kwargs": {}}))
        ids |= {job.id for job in await app.backend.enqueue(wanted)}
    for id in ids:
        try:
            await app.job(id).result(PATIENCE_S)
        except zq.JobFailed:
            pass
        except zq.WaitTimeout:
            pytest.fail(f"it has not ended: {await app.backend.get(id)}")
    return [await app.backend.get(id) for id in ids]


def ways(queue: str) -> Sequence[str]:
    more = raising.OF_PROCESSES if queue == "processes" else {}
    return [*raising.EVERYWHERE, *more]


def check(jobs: Sequence[StoredJob], runs: dict[str, list[Run]]) -> int:
    """Check that each job ran as often as it should, once at a time. Return how often all ran."""
    assert runs.keys() <= {job.id for job in jobs}
    for job in jobs:
        (how,) = job.payload["args"]
        tries = 1 if how in raising.UNWRITABLE else 2
        expected = ("completed", 0, 1) if how in raising.FINE else ("dead", tries, tries)
        ran = len(runs.get(job.id, ()))
        if how == raising.HANGS and ran < tries:
            ran = tries  # its time was up before a busy machine had called the function
        found = (job.status, job.attempts, ran)
        assert found == expected, f"{how} in {job.queue}: {found}"
        assert job.stalls is None
        for (_, end), (begin, _) in pairwise(runs.get(job.id, ())):
            assert end <= begin, f"{how} in {job.queue} ran twice at a time"
    return sum(map(len, runs.values()))


class Runs:
    """The executions that handlers have noted in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0

    def of_round(self) -> dict[str, list[Run]]:
        """The executions since the last call, by the ids of their jobs.

        One whose process was killed has no end: it is over when it has begun. A thread that could
        not be ended in time may end in a later round, which does not count.
        """
        with self.path.open() as file:
            file.seek(self._read)
            lines = [line.split() for line in file.read().splitlines()]
            self._read = file.tell()
        found: defaultdict[str, list[Run]] = defaultdict(list)
        for id, _, moment, word in lines:
            if word == "begins":
                found[id].append((float(moment), float(moment)))
            elif id in found:
                begin, _ = found[id].pop()
                found[id].append((begin, float(moment)))
        return found


@asynccontextmanager
async def workers(url: str, runs: Path) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """A worker for each queue. In the end each of them stops as it is told."""
    environment = os.environ | {
        "ZQ_URL": url,
        "RUNS": str(runs),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    started = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "zq.cli", "worker", "client.raising:app", "-q", queue),
            *(*flags, "--cleanup-timeout", "100ms", "--log-level", "error"),
            env=environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        for queue, flags in WORKERS.items()
    ]
    try:
        yield started
        for each in started:
            each.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            threads, *others = [await each.wait() for each in started]
        # A thread cannot be ended: where one ignores its end, work was left, which the code 1 says.
        assert threads in (0, 1)
        assert others == [0] * len(others)
    finally:
        for each in started:
            if each.returncode is None:
                each.kill()
                await each.wait()


def sizes_of(processes: Sequence[asyncio.subprocess.Process]) -> str:
    """The memory of the workers in MB, for people."""
    sizes = []
    for each in processes:
        status = Path(f"/proc/{each.pid}/status").read_text()
        (kilobytes,) = [line.split()[1] for line in status.splitlines() if "VmRSS" in line]
        sizes.append(f"{int(kilobytes) / 1024:.0f}")
    return f"workers of {', '.join(sizes)} MB"
