"""What thousands of waiting workers cost a server that has nothing to do."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench import proc
from bench.http1 import TakeStream
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab

CONNECT_AT_ONCE = 100
CONNECT_SECONDS = 60.0
SETTLE_SECONDS = 5.0
SPARE_DESCRIPTORS = 200


@dataclass(frozen=True)
class Idle:
    """CPU is the share of one core; memory in MiB; heartbeats a second over all streams."""

    streams: int
    rss_before_mb: float
    rss_mb: float
    cpu: float
    heartbeats: float


def allow_descriptors(count: int) -> None:
    """Raise the soft limit for this process and its children; ValueError above the hard one."""
    need = count + SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < need:
        raise ValueError(f"{count} streams need {need} descriptors, the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, need), hard))


async def wait_idle(target: Target, streams: int, seconds: float) -> Idle:
    session = Session(target.port)
    lines = 0

    def on_lines(text: bytes) -> None:
        nonlocal lines
        lines += text.count(b"\n")

    before = proc.rss_mb(target.pid)
    try:
        for first in range(0, streams, CONNECT_AT_ONCE):
            await open_streams(session, min(CONNECT_AT_ONCE, streams - first), on_lines)
        await session.pause(SETTLE_SECONDS)
        lines, cpu, began = 0, proc.cpu_seconds(target.pid), time.perf_counter()
        await session.pause(seconds)
        elapsed = time.perf_counter() - began
        cpu = (proc.cpu_seconds(target.pid) - cpu) / elapsed
        return Idle(streams, before, proc.rss_mb(target.pid), cpu, lines / elapsed)
    finally:
        session.close()


async def open_streams(session: Session, count: int, on_lines: Callable[[bytes], None]) -> None:
    """Open streams and wait for their heads: an overrun listen backlog costs a second a retry."""
    makers = (session.connect(lambda: TakeStream("/jobs/take", on_lines)) for _ in range(count))
    takers = await asyncio.gather(*makers)
    await session.until(lambda: all(taker.streaming for taker in takers), CONNECT_SECONDS)


def run_idle(target: Target, streams: int, seconds: float) -> Idle:
    return run(wait_idle(target, streams, seconds))


def idle(
    lab: Lab, servers: list[str], streams: int, seconds: float, progress: Progress
) -> dict[str, Idle]:
    allow_descriptors(streams)
    found = {}
    for server in servers:
        progress.show(f"{server}: {streams:,} take streams for {seconds:g} s")
        with lab.server(server) as target:
            found[server] = in_own_process(run_idle, target, streams, seconds)
    progress.clear()
    return found


def idle_table(found: dict[str, Idle]) -> Table:
    lines = []
    for server, each in found.items():
        cells = [number(each.streams), number(each.rss_before_mb), number(each.rss_mb)]
        lines.append([server, *cells, number(each.cpu * 100, 1), number(each.heartbeats)])
    header = ["server", "streams", "RSS MB before", "RSS MB", "CPU % of a core", "heartbeats/s"]
    return Table(header, lines)
