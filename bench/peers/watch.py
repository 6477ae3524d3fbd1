"""Follows a worker through the reports that its handlers write."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import proc
from bench.peers.servers import PeerError, Server
from bench.peers.wire import Report, load_report
from bench.servers import tail

LOOK_EVERY = 0.005
FIRST_SECONDS = 60.0


@dataclass(frozen=True)
class Mark:
    """The progress of server and worker at one time, with CPU in seconds so far."""

    count: int
    server_cpu: float
    worker_cpu: float


class Watch:
    def __init__(
        self,
        report: Path,
        log: Path,
        programs: Sequence[subprocess.Popen[bytes]],
        server: Server,
    ) -> None:
        self._report = report
        self._log = log
        self._programs = programs
        self._server = server
        self._read = report.stat().st_size
        self._reports: dict[int, Report] = {}
        self.late: list[float] = []

    @property
    def count(self) -> int:
        return sum(report.count for report in self._reports.values())

    @property
    def first(self) -> float:
        return min(report.first for report in self._reports.values())

    @property
    def last(self) -> float:
        return max(report.last for report in self._reports.values())

    def begin(self) -> Mark:
        """Wait for the first jobs. The cost of starting lies before the mark."""
        deadline = time.monotonic() + FIRST_SECONDS
        while self.count < 2:  # a rate needs two
            if time.monotonic() > deadline:
                raise PeerError(f"no job ran within {FIRST_SECONDS:.0f} s:\n{tail(self._log)}")
            self._look()
        return self.mark()

    def until(self, count: int, seconds: float) -> Mark:
        """Wait until `count` handlers have run in all, or `seconds` are over."""
        deadline = time.monotonic() + seconds
        while self.count < count and time.monotonic() < deadline:
            self._look()
        return self.mark()

    def mark(self) -> Mark:
        worker = sum(proc.cpu_seconds(each.pid) for each in self._programs)
        return Mark(self.count, self._server.cpu_seconds(), worker)

    def worker_peak(self) -> float:
        """The peak memory in MiB: the sum over all its processes."""
        return sum(proc.peak_rss_mb(each.pid) for each in self._programs)

    def _look(self) -> None:
        time.sleep(LOOK_EVERY)
        for program in self._programs:
            if (status := program.poll()) is not None:
                raise PeerError(f"a worker ended with status {status}:\n{tail(self._log)}")
        with self._report.open() as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith("\n"):
                    break
                self._read += len(line)
                report = load_report(line)
                self._reports[report.pid] = report
                self.late += report.late
