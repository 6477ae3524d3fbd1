"""Requests of one job each under the load of `wrk`: one thread of C, which leaves a core free."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench import proc
from bench.actors import ID, RENDERED_SINGLES, bulk_requests, job
from bench.http1 import LoadError, TakeStream
from bench.load import FILL_SECONDS, Session, Target, fill, run
from bench.servers import ServerError

SCRIPT = Path(__file__).with_name("wrk.lua")
WARM_UP = 1
MOST_ACKS_A_SECOND = 40_000
"""More than any server does. It decides how many jobs are taken before the clock starts."""


@dataclass(frozen=True)
class WrkResult:
    """Requests a second, the cores that the server used, and round trips in ms."""

    rate: float
    cores: float
    p50: float
    p99: float


def find_wrk() -> str:
    """The path of wrk. Raises ServerError if it is not installed."""
    if found := shutil.which("wrk"):
        return found
    raise ServerError("wrk is not installed: on Debian, run `apt-get install wrk`")


def enqueue(target: Target, callers: int, seconds: int, queues: int, folder: Path) -> WrkResult:
    """Callers post job after job."""
    lines = [b"/jobs\t" + orjson.dumps(job(number, queues)) for number in range(RENDERED_SINGLES)]
    script = written(folder / "jobs.txt", lines)
    drive(target, callers, WARM_UP, script)
    return drive(target, callers, seconds, script)


def acknowledge(target: Target, callers: int, seconds: int, queues: int, folder: Path) -> WrkResult:
    """Callers acknowledge the jobs that one stream holds, one job in a request."""
    return run(_acknowledge(target, callers, seconds, queues, folder))


async def _acknowledge(
    target: Target, callers: int, seconds: int, queues: int, folder: Path
) -> WrkResult:
    wanted = MOST_ACKS_A_SECOND * seconds
    ids: list[bytes] = []
    session = Session(target.port)
    try:
        await fill(session, bulk_requests(queues), wanted)
        path = f"/jobs/take?prefetch={wanted}"
        await session.connect(lambda: TakeStream(path, lambda text: ids.extend(ID.findall(text))))
        await session.until(lambda: len(ids) >= wanted, FILL_SECONDS)
        script = written(folder / "acks.txt", [b"/jobs/%b/success\t" % key for key in ids])
        # The stream stays open: when it ends, its jobs are returned.
        return await asyncio.to_thread(drive, target, callers, seconds, [*script, "once"])
    finally:
        session.close()


def written(path: Path, lines: list[bytes]) -> list[str]:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return [str(path)]


def drive(target: Target, callers: int, seconds: int, script: list[str]) -> WrkResult:
    """Run wrk once. Raises LoadError if any answer was not a success."""
    command = [find_wrk(), "-t1", f"-c{callers}", f"-d{seconds}s", f"-s{SCRIPT}"]
    command += [f"http://127.0.0.1:{target.port}", *script]
    before = proc.cpu_seconds(target.pid)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    cpu = proc.cpu_seconds(target.pid) - before
    if ran.returncode:
        raise LoadError(f"wrk failed: {ran.stderr.strip() or ran.stdout.strip()}")
    said = json.loads(ran.stdout.strip().splitlines()[-1])
    if said["failed"]:
        raise LoadError(f"{said['failed']} requests of wrk failed")
    if said["left_over"]:
        raise LoadError("wrk ran out of jobs to acknowledge")
    took = said["seconds"]
    return WrkResult(said["requests"] / took, cpu / took, said["p50"], said["p99"])
