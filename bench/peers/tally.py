"""The body of every handler of a Python peer: it counts, and reports to the harness."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from bench.peers.wire import Report, Site, dump, site

REPORT_EVERY = 0.02


class Deliberate(Exception):
    """The failure of a job that is meant to fail."""


class Tally:
    """Counts the handlers of one process. list.append is atomic, so threads need no lock."""

    def __init__(self, place: Site) -> None:
        self._path = Path(place.report)
        self._detail = place.detail
        self._stamps: list[float] = []
        self._late: list[float] = []
        self._starting = threading.Lock()
        self._reporter: threading.Thread | None = None

    def hit(self, at: float) -> None:
        now = time.perf_counter()
        if self._reporter is None:
            self._start()
        if self._detail:
            self._late.append(now - at)
        self._stamps.append(now)

    def _start(self) -> None:
        """Start the thread at the first job, which comes after the forks of a worker that forks."""
        with self._starting:
            if self._reporter is None:
                self._reporter = threading.Thread(target=self._run, daemon=True)
                self._reporter.start()

    def _run(self) -> None:
        told = 0
        with self._path.open("a", buffering=1) as file:
            while True:
                time.sleep(REPORT_EVERY)
                if (count := len(self._stamps)) > told:
                    late = self._late[told:count]
                    first, last = self._stamps[0], self._stamps[count - 1]
                    # Each line is one write: lines of several processes do not mix.
                    file.write(dump(Report(os.getpid(), count, first, last, late)) + "\n")
                    told = count


PLACE = site()
TALLY = Tally(PLACE)


def handle(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Do the work of every job: nothing. It fails or returns a result if the row wants that."""
    TALLY.hit(payload["at"])
    if PLACE.failing:
        raise Deliberate
    return {"n": payload["n"]} if PLACE.results else None
