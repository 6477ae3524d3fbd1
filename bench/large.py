"""Large payloads: how many bytes a second one worker gets over its take stream."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from bench import proc
from bench.http1 import BLANK_LINE, Client, Connection, check_status, get, post
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab

MB = 1e6
FILL_CONNECTIONS = 4
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Large:
    """MB are a million bytes; CPU in seconds for 1,000 MB; peak RSS in MiB."""

    server: str
    payload: int
    jobs: int
    mb_a_second: float
    server_cpu: float
    load_cpu: float
    peak_rss_mb: float


class Sink(Client):
    """Takes jobs and counts their bytes without reading them."""

    def __init__(self, prefetch: int) -> None:
        self.received = 0
        self._prefetch = prefetch
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast(asyncio.Transport, transport).write(get(f"/jobs/take?prefetch={self._prefetch}"))

    def data_received(self, data: bytes) -> None:
        if BLANK_LINE not in self._head:
            self._head += data
            data = self._head.partition(BLANK_LINE)[2]
            if BLANK_LINE in self._head:
                check_status(self._head)
        self.received += len(data)


async def take_large(target: Target, server: str, payload: int, jobs: int) -> Large:
    session = Session(target.port)
    try:
        await fill(session, payload, jobs)
        cpu, own_cpu, began = proc.cpu_seconds(target.pid), time.process_time(), time.perf_counter()
        sink = await session.connect(lambda: Sink(jobs))
        await session.until(lambda: sink.received >= payload * jobs, PATIENCE_S)
        seconds = time.perf_counter() - began
        volume = payload * jobs / MB
        return Large(
            server,
            payload,
            jobs,
            volume / seconds,
            (proc.cpu_seconds(target.pid) - cpu) / volume * 1e3,
            (time.process_time() - own_cpu) / volume * 1e3,
            proc.peak_rss_mb(target.pid),
        )
    finally:
        session.close()


async def fill(session: Session, payload: int, jobs: int) -> None:
    """Store jobs with payloads of `payload` bytes, one in a request."""
    text = '"' + "x" * (payload - 2) + '"'
    request = post("/jobs", f'{{"queue":"queue-0","type":"t","payload":{text}}}'.encode())
    stored = sent = 0

    def send(connection: Connection) -> None:
        nonlocal sent
        if sent < jobs:
            sent += 1
            connection.send(request)

    def on_reply(connection: Connection, _seconds: float) -> None:
        nonlocal stored
        stored += 1
        send(connection)

    for _ in range(FILL_CONNECTIONS):
        send(await session.connect(lambda: Connection(on_reply)))
    await session.until(lambda: stored >= jobs, PATIENCE_S)


def run_large(target: Target, server: str, payload: int, jobs: int) -> Large:
    return run(take_large(target, server, payload, jobs))


def large(
    lab: Lab, servers: Sequence[str], payload: int, jobs: int, rounds: int, progress: Progress
) -> list[Large]:
    """Every round on every server, each with new storage."""
    found = []
    for turn in range(rounds):
        for server in servers:
            progress.show(f"round {turn + 1} of {rounds}: {jobs} jobs from {server}")
            with lab.server(server) as target:
                found.append(in_own_process(run_large, target, server, payload, jobs))
    progress.clear()
    return found


def large_table(found: Sequence[Large]) -> Table:
    """Medians; for the rate also the slowest and the fastest round."""
    lines = []
    for server in dict.fromkeys(each.server for each in found):
        runs = [each for each in found if each.server == server]
        rates = [each.mb_a_second for each in runs]
        cells = [number(statistics.median(rates)), f"{min(rates):,.0f}-{max(rates):,.0f}"]
        cells += [number(statistics.median(each.server_cpu for each in runs), 2)]
        cells += [number(statistics.median(each.load_cpu for each in runs), 2)]
        cells += [number(max(each.peak_rss_mb for each in runs))]
        lines.append([server, number(runs[0].payload), number(runs[0].jobs), *cells])
    header = ["server", "bytes", "jobs", "MB/s", "low-high", "CPU s a GB", "load CPU s", "RSS MB"]
    return Table(header, lines)
