"""200 devices send numbered jobs to one hub, and one of them floods: how long the others wait.

A device sends a request each second, on a connection of its own. The one that floods has a backlog:
it sends a batch as soon as the one before is answered, once as large as the hub asks for, and once
as large as a lane sends that is alone.
"""

from __future__ import annotations

import time
import urllib.request
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product
from statistics import median

import orjson

from bench.actors import percentiles
from bench.http1 import Connection, post
from bench.latency import pace
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number, ratio
from bench.servers import Lab

DEVICES = 200
JOBS_EACH = 20
"""How many jobs a device has to send each second."""

BATCH = 500
LAST_ANSWER_S = 60.0
CASES = ("calm", "one floods", "one floods by 500")


@dataclass(frozen=True)
class FleetRun:
    """Milliseconds from the requests of devices to their answers, without the one that floods."""

    case: str
    requests: int
    p50: float
    p99: float
    worst: float
    flood: float
    """Jobs of the flood that were stored in a second."""


class DeviceLane:
    """A device with one lane: at most one request is under way, and the next one waits for it."""

    def __init__(self, name: str, jobs: int, *, floods: bool = False) -> None:
        job = {"queue": "readings", "type": "store", "payload": {"c": 20.5, "device": name}}
        self._request = post("/jobs/bulk", orjson.dumps({"jobs": [job] * jobs}))
        self._name = name
        self._jobs = jobs
        self._floods = floods
        self._connection: Connection | None = None
        self._busy = False
        self._due = 0
        self.sent = 0
        """Jobs that have numbers."""
        self.times: list[float] = []

    async def connect(self, session: Session) -> None:
        self._connection = await session.connect(lambda: Connection(self._on_reply))

    @property
    def is_idle(self) -> bool:
        """True if nothing is under way and nothing waits."""
        return not self._busy and not self._due

    def send(self) -> None:
        """Send a request, after those that are under way."""
        self._due += 1
        self._go_on()

    def stop(self) -> None:
        """Flood no more."""
        self._floods = False

    def _go_on(self) -> None:
        if self._busy or not self._due:
            return
        assert self._connection is not None
        self._busy = True
        self._due -= 1
        header = f"\r\nZq-Producer: {self._name}/main; epoch=1; seq={self.sent + 1}\r\n"
        self.sent += self._jobs
        self._connection.send(self._request.replace(b"\r\n", header.encode(), 1))

    def _on_reply(self, connection: Connection, seconds: float) -> None:
        self._busy = False
        self.times.append(seconds)
        self._due += self._floods
        self._go_on()


def report(target: Target, name: str) -> int:
    """Report as a device. Return the most jobs of a request, as the hub says."""
    said = {"instance": "1", "version": "bench", "now": round(time.time() * 1000)}
    request = urllib.request.Request(
        f"http://127.0.0.1:{target.port}/devices/{name}", orjson.dumps(said), method="PUT"
    )
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as reply:
        batch: int = orjson.loads(reply.read()).get("batch", BATCH)
    return min(BATCH, batch)


async def drive(target: Target, seconds: float, rounds: int) -> list[tuple[list[float], float]]:
    """For each case of each round, the seconds of all requests but those of the flood, and its jobs
    a second."""
    session = Session(target.port)
    devices = [DeviceLane(f"device-{number}", JOBS_EACH) for number in range(1, DEVICES)]
    found: list[tuple[list[float], float]] = []

    def send(number: int) -> None:
        devices[number % len(devices)].send()

    try:
        for number in range(1, DEVICES):
            report(target, f"device-{number}")
        # Only then: the server ends a connection that says nothing for a minute.
        for device in devices:
            await device.connect(session)
        batches = [None, report(target, "flood"), BATCH]
        for round, batch in product(range(rounds), batches):
            flood = DeviceLane(f"flood-{round}-{batch}", batch or 0, floods=True)
            if batch is not None:
                await flood.connect(session)
                flood.send()
            before = [len(device.times) for device in devices]
            await pace(session, send, len(devices), seconds)
            stored = flood.sent
            flood.stop()
            for device in (*devices, flood):
                await session.until(partial(_is_idle, device), LAST_ANSWER_S)
            times = [
                time
                for device, known in zip(devices, before, strict=True)
                for time in device.times[known:]
            ]
            found.append((times, stored / seconds))
    finally:
        session.close()
    return found


def _is_idle(device: DeviceLane) -> bool:
    return device.is_idle


def run_drive(target: Target, seconds: float, rounds: int) -> list[tuple[list[float], float]]:
    return run(drive(target, seconds, rounds))


def fleet(lab: Lab, seconds: float, rounds: int, progress: Progress) -> list[FleetRun]:
    """All cases on one server, one after the other, again and again."""
    progress.show("fleet")
    with lab.server("zq") as target:
        found = in_own_process(run_drive, target, seconds, rounds)
    progress.clear()
    runs = []
    for case, (times, flood) in zip(cycle(CASES), found, strict=False):
        p50, p99 = percentiles(times)
        runs.append(FleetRun(case, len(times), p50 * 1e3, p99 * 1e3, max(times) * 1e3, flood))
    return runs


def fleet_table(found: list[FleetRun]) -> Table:
    """A line a case, with medians over the rounds.

    The last column compares its p99 with that of the calm case of the same round.
    """
    header = ["case", "requests", "p50 ms", "p99 ms", "worst ms", "flood, jobs/s", "p99 of calm"]
    calm = [each.p99 for each in found if each.case == CASES[0]]
    lines = []
    for case in CASES:
        some = [each for each in found if each.case == case]
        figures = zip(*((each.p50, each.p99, each.worst, each.flood) for each in some), strict=True)
        p50, p99, worst, flood = map(median, figures)
        slower = ratio([each.p99 / at for each, at in zip(some, calm, strict=True)])
        requests = number(sum(each.requests for each in some))
        times = [number(ms, 1) for ms in (p50, p99, worst)]
        lines.append([case, requests, *times, number(flood), slower])
    return Table(header, lines)
