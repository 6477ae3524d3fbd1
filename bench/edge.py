"""What zq costs a small device: memory, threads, modules, a start, and what it writes to its card.

Bytes are the kernel's count of what the process had it write to the disk (`write_bytes`), so they
have what a file system adds for data, and nothing that a card adds. A card erases whole units, so
each flush costs it whole units: the last columns say how much that is, if the bytes of a flush lie
beside each other and begin anywhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from bench.children import running
from bench.proc import TICKS_A_SECOND
from bench.report import Progress, Table, number
from bench.servers import LOG, REPOSITORY, Lab, end, wait_for_port

ERASED = (4, 16)
"""KiB of the units that cards erase."""

PAYLOAD = {"to": "x" * 100}
JOB = {"queue": "mail", "type": "hello", "payload": PAYLOAD}

REST_S = 13.0
"""Connections for reads are closed ten seconds after the last read."""

IDLE_S = 2.5
"""An idle server copies its log after a second, unless its flags say otherwise."""

CASES: dict[str, tuple[str, ...]] = {
    "defaults": (),
    "--page-size 2KiB": ("--page-size", "2KiB"),
    "--preset edge": ("--preset", "edge"),
    "and --flush-interval 5s": ("--preset", "edge", "--flush-interval", "5s"),
}


@dataclass(frozen=True)
class Footprint:
    """A server at rest, after its first job. Memory in MiB, processor time in seconds."""

    rss_mb: float
    anonymous_mb: float
    threads: int
    modules: int
    start_cpu: float


@dataclass(frozen=True)
class Wear:
    """KiB written: for a commit of so many jobs, and for one job over its whole life."""

    commits: dict[int, float]
    life: float


@dataclass(frozen=True)
class EdgeResult:
    """The result for one set of flags."""

    case: str
    footprint: Footprint
    wear: Wear
    slowest: list[str] = field(default_factory=list)


class EdgeServer:
    """One server, and a connection to it."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> object:
        """Send a request; the document of its answer."""
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        read = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {read!r}")
        return json.loads(read) if read else None

    def live(self) -> None:
        """Store one job, take it, and acknowledge it."""
        self.ask("POST", "/jobs", JOB)
        claim: Any = self.ask("POST", "/queues/mail/claim", {"holder": "bench"})
        (job,) = claim["jobs"]
        self.ask("POST", f"/jobs/{job['id']}/success")

    def written_kib(self, act: Callable[[], object], times: int) -> float:
        """What is written in the mean when `act` runs."""
        before = self._written()
        for _ in range(times):
            act()
        return (self._written() - before) / times / 1024

    def _written(self) -> int:
        text = Path(f"/proc/{self.pid}/io").read_text()
        found = re.search(r"^write_bytes: (\d+)$", text, re.MULTILINE)
        assert found is not None
        return int(found[1])

    def settle(self) -> None:
        """Wait until nothing more is written: an idle server copies its log into the database."""
        written = -1
        while written != (now := self._written()):
            written = now
            time.sleep(IDLE_S)

    def footprint(self, modules: int) -> Footprint:
        """What it has in memory now."""
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines()
        )
        kib = {name: int(status[name].split()[0]) for name in ("VmRSS", "RssAnon")}
        threads = int(status["Threads"])
        return Footprint(kib["VmRSS"] / 1024, kib["RssAnon"] / 1024, threads, modules, 0.0)

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


@contextlib.contextmanager
def edge_server(
    folder: Path, flags: Sequence[str], *python: str, log: Path | None = None
) -> Iterator[EdgeServer]:
    """A server as a user starts it, on new data."""
    root = Path(tempfile.mkdtemp(prefix="edge-", dir=folder))
    log = log or root.with_suffix(".log")
    command = [sys.executable, *python, "-m", "zq.cli", "serve", *LOG, "--port", "0"]
    command += ["--admin-port", "0", "--root-dir", str(root), *flags]

    def begin() -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(
                command, cwd=REPOSITORY, env=os.environ, stdout=output, stderr=subprocess.STDOUT
            )

    with running(begin, end) as process:
        yield EdgeServer(process.pid, wait_for_port(process, log, seconds=60))


def imported(folder: Path, flags: Sequence[str]) -> list[tuple[str, int]]:
    """The modules of a start that has stored a job, each with its own microseconds."""
    log = folder / "imports.log"
    with edge_server(folder, flags, "-X", "importtime", log=log) as server:
        server.ask("POST", "/jobs", JOB)
    found = re.findall(r"^import time: +(\d+) \|.*\| +(\S+)$", log.read_text(), re.MULTILINE)
    return [(name, int(own)) for own, name in found]


def wear_of(server: EdgeServer, times: int = 20) -> Wear:
    """What commits and lives of jobs write on a server that has stored some already."""
    for _ in range(20):
        server.ask("POST", "/jobs", JOB)
    commits = {1: server.written_kib(lambda: server.ask("POST", "/jobs", JOB), times)}
    for size in (10, 100):
        bulk = {"jobs": [JOB] * size}
        store = partial(server.ask, "POST", "/jobs/bulk", bulk)
        commits[size] = server.written_kib(store, 5)

    def life() -> None:
        server.live()
        server.settle()

    server.settle()
    return Wear(commits, server.written_kib(life, 4))


def edge(place: Lab, progress: Progress) -> list[EdgeResult]:
    """Measure each case."""
    found = []
    for case, flags in CASES.items():
        progress.show(f"edge: {case}")
        modules = imported(place.directory, flags)
        with edge_server(place.directory, flags) as server:
            server.ask("GET", "/health")
            server.ask("POST", "/jobs", JOB)
            start = server.cpu_seconds()
            time.sleep(REST_S)
            rest = server.footprint(len(modules))
            wear = wear_of(server)
        rest = Footprint(rest.rss_mb, rest.anonymous_mb, rest.threads, rest.modules, start)
        slowest = sorted(modules, key=lambda each: -each[1])[:10]
        found.append(
            EdgeResult(case, rest, wear, [f"{n} {own / 1000:.0f} ms" for n, own in slowest])
        )
    progress.clear()
    return found


def erased_kib(written: float, unit: int) -> float:
    """KiB that a card erases for one flush, in the mean over all places where it may begin."""
    return written + unit - 4 if written else 0.0


def edge_table(found: list[EdgeResult]) -> Table:
    """A line for each case."""
    header = ["case", "RSS MB", "anonymous MB", "threads", "modules", "start s CPU", "1 job KiB"]
    header += ["10 jobs", "100 jobs", "a life KiB"]
    header += [f"1 job, units of {unit} KiB" for unit in ERASED]
    lines = []
    for each in found:
        rest, wear = each.footprint, each.wear
        cells = [number(rest.rss_mb, 1), number(rest.anonymous_mb, 1), str(rest.threads)]
        cells += [str(rest.modules), number(rest.start_cpu, 2)]
        cells += [number(wear.commits[size], 1) for size in (1, 10, 100)]
        cells += [number(wear.life, 1)]
        cells += [number(erased_kib(wear.commits[1], unit), 1) for unit in ERASED]
        lines.append([each.case, *cells])
    return Table(header, lines)
