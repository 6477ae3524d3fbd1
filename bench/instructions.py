"""How many instructions a server runs for one `POST /jobs`, by the number of callers.

Callgrind runs the server some fifty times slower, and counts. The count does not depend on how busy
the machine is. It leaves out the kernel and the disk, and includes the little idle work in between.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.actors import Meter, Producer, single_requests
from bench.http1 import Connection
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab, ServerError

START_SECONDS = 600.0
LOAD_SECONDS = 600.0
WARM_UP = 200
"""How many requests come before the count: they warm the caches of statements and code."""

REQUESTS = {1: 400, 8: 800, 64: 1600}
"""Callers → how many requests are counted."""

TOTAL = re.compile(r"^totals: (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Counted:
    server: str
    callers: int
    instructions: float


def instructions(lab: Lab, servers: list[str], queues: int, progress: Progress) -> list[Counted]:
    """Every number of callers on each server, one after the other: noise does not matter here."""
    for program in ("valgrind", "callgrind_control"):
        if not shutil.which(program):
            raise ServerError(f"{program} is missing: on Debian, run `apt-get install valgrind`")
    return [counted for server in servers for counted in count(lab, server, queues, progress)]


def count(lab: Lab, server: str, queues: int, progress: Progress) -> Iterator[Counted]:
    counts = lab.directory / f"callgrind-{server}"
    tool = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}")
    progress.show(f"{server}: starting under callgrind")
    with replace(lab, tool=tool, start_seconds=START_SECONDS).server(server) as target:
        in_own_process(run_posts, target, queues, 1, WARM_UP)
        since_last_dump(target, counts)
        for callers, requests in REQUESTS.items():
            progress.show(f"{server}: {callers} callers")
            in_own_process(run_posts, target, queues, callers, requests)
            yield Counted(server, callers, since_last_dump(target, counts) / requests)
    progress.clear()


def since_last_dump(target: Target, counts: Path) -> int:
    """Let callgrind write its count since the last dump. Return that count."""
    command = ["callgrind_control", "--dump", str(target.pid)]
    subprocess.run(command, check=True, capture_output=True)
    # Callgrind numbers its files from 1.
    number = len(list(counts.parent.glob(f"{counts.name}.*")))
    found = TOTAL.search(Path(f"{counts}.{number}").read_text())
    assert found, "callgrind has written no totals"
    return int(found[1])


def run_posts(target: Target, queues: int, callers: int, requests: int) -> None:
    run(posts(target, queues, callers, requests))


async def posts(target: Target, queues: int, callers: int, requests: int) -> None:
    session = Session(target.port)
    producer = Producer(Meter("posts"), single_requests(queues), 1, allowance=requests)
    try:
        for _ in range(callers):
            producer.use(await session.connect(lambda: Connection(producer.on_reply)))
        await session.until(lambda: producer.meter.jobs >= requests, LOAD_SECONDS)
    finally:
        session.close()


def instructions_table(found: list[Counted]) -> Table:
    """A line a server: thousands of instructions a request, and the ratio to the first server."""
    of = {(each.server, each.callers): each.instructions for each in found}
    servers = list(dict.fromkeys(each.server for each in found))
    header = ["thousand instructions a request"]
    header += [f"{callers} callers" if callers > 1 else "1 caller" for callers in REQUESTS]
    header += [f"{servers[0]} / it, {callers}" for callers in REQUESTS]
    lines = []
    for server in servers:
        counts = [of[server, callers] for callers in REQUESTS]
        first = [of[servers[0], callers] for callers in REQUESTS]
        ratios = [number(ours / its, 2) for ours, its in zip(first, counts, strict=True)]
        cells = [number(each / 1e3) for each in counts]
        lines.append([server, *cells, *([""] * len(REQUESTS) if server == servers[0] else ratios)])
    return Table(header, lines)
