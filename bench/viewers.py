"""What viewers of the admin API cost: the same load with some viewers and without any."""

from __future__ import annotations

import contextlib
import selectors
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.compare import cpu_per_job
from bench.load import LoadResult, in_own_process, run_load
from bench.ports import free_port
from bench.report import Progress, Table, number, ratio, span
from bench.rows import ROWS
from bench.servers import REPOSITORY, Lab

SERVER = "zq-admin"
VIEWERS = 20
AIM = 0.97
"""The smallest acceptable ratio of the rates."""

HANDSHAKE = (
    b"GET /events HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)

LIVE = b"GET /ui/live?topic=overview HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""What a browser with the operators' page asks for."""


@dataclass(frozen=True)
class Watched:
    """One row in one round, without viewers and with them."""

    row: str
    alone: LoadResult
    watched: LoadResult


def viewers(
    lab: Lab,
    rows: list[str],
    rounds: int,
    seconds: float,
    queues: int,
    progress: Progress,
    *,
    pages: bool = False,
) -> list[Watched]:
    """Each row on a fresh server with and without viewers. The order changes with every round.

    The viewers are WebSockets, or `pages` of operators.
    """
    samples = []
    for turn in range(rounds):
        for row in rows:
            progress.show(f"round {turn + 1}/{rounds} {row}")
            results: dict[int, LoadResult] = {}
            for count in (0, VIEWERS) if turn % 2 else (VIEWERS, 0):
                port = free_port()
                watched = replace(lab, environment={**lab.environment, "ZQ_ADMIN_PORT": str(port)})
                with watched.server(SERVER) as target, watching(port, count, pages):
                    spec = ROWS[row].spec(queues, seconds)
                    results[count] = in_own_process(run_load, target, spec)
            samples.append(Watched(row, results[0], results[VIEWERS]))
    progress.clear()
    return samples


def viewers_table(samples: list[Watched]) -> Table:
    """`ratio` is the rate with viewers over the rate without; `by CPU` compares CPU time a job."""
    lines = []
    for row in dict.fromkeys(sample.row for sample in samples):
        of_row = [sample for sample in samples if sample.row == row]
        rates = [(s.alone.measures[0].rate, s.watched.measures[0].rate) for s in of_row]
        ratios = [watched / alone for alone, watched in rates]
        by_cpu = [cpu_per_job(s.alone) / cpu_per_job(s.watched) for s in of_row]
        middle = [number(statistics.median(each)) for each in zip(*rates, strict=True)]
        measured = [ratio(ratios), span(ratios, 2), ratio(by_cpu), number(AIM, 2)]
        lines.append([row, *middle, *measured])
    header = ["row", "alone /s", f"{VIEWERS} viewers /s", "ratio", "low-high", "by CPU", "aim"]
    return Table(header, lines)


@contextlib.contextmanager
def watching(port: int, count: int, pages: bool) -> Iterator[None]:
    """Run viewers in a process of their own. They only read."""
    command = [sys.executable, "-m", "bench.viewers", str(port), str(count)]
    command += ["pages"] if pages else []
    with subprocess.Popen(command, cwd=REPOSITORY) as process:
        try:
            yield
        finally:
            process.terminate()


def watch(port: int, count: int, asked: bytes) -> None:
    """Open the sockets, and read until the process is ended."""
    readers = selectors.DefaultSelector()
    for _ in range(count):
        viewer = socket.create_connection(("127.0.0.1", port))
        viewer.sendall(asked)
        readers.register(viewer, selectors.EVENT_READ)
    buffer = bytearray(1 << 20)
    while True:
        for key, _ in readers.select():
            viewer = key.fileobj  # type: ignore[assignment]
            if not viewer.recv_into(buffer):
                readers.unregister(viewer)


if __name__ == "__main__":
    watch(int(sys.argv[1]), int(sys.argv[2]), LIVE if sys.argv[3:] else HANDSHAKE)
