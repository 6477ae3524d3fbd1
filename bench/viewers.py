"""What viewers of the admin API cost: the same load with some viewers and without any."""

from __future__ import annotations

import contextlib
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from bench.history import Pair, in_pairs, pair_table
from bench.load import LoadResult, in_own_process, run_load
from bench.ports import free_port
from bench.report import Progress, Table
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


def viewers(
    lab: Lab,
    rows: list[str],
    rounds: int,
    seconds: float,
    queues: int,
    progress: Progress,
    *,
    pages: bool = False,
) -> list[Pair]:
    """Each row on fresh servers with viewers and without: WebSockets, or `pages` of operators."""

    def measure(row: str, is_on: bool) -> LoadResult:
        port = free_port()
        watched = replace(lab, environment={**lab.environment, "ZQ_ADMIN_PORT": str(port)})
        with watched.server(SERVER) as target, watching(port, VIEWERS * is_on, pages):
            return in_own_process(run_load, target, ROWS[row].spec(queues, seconds))

    return in_pairs(rows, rounds, progress, measure)


def viewers_table(pairs: list[Pair]) -> Table:
    """The rates with viewers beside those without."""
    return pair_table(pairs, ("alone", f"{VIEWERS} viewers"), dict.fromkeys(ROWS, AIM))


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
