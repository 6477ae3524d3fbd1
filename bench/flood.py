"""One tenant floods a queue, and others send a job a second each: how long these wait.

The flood is stored in bulk. While workers drain it, 100 other tenants go on. Without fair keys, as
in queues that have none, a job of theirs waits for all that was stored before it. The last case has
no flood.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import orjson

from bench.actors import BULK, Meter, Producer, percentiles
from bench.http1 import Connection, TakeStream, post
from bench.latency import LAST_JOB_SECONDS, Steady, Waiting, pace
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab

TENANTS = 100
WORKERS = 4
PREFETCH = 10
CONNECTIONS = 8
FLOOD_CONNECTIONS = 4
FLOOD_SECONDS = 600.0
FLOOD = b'"type":"flood"'
CASES = ("no fair keys", "fair keys", "no flood")


@dataclass(frozen=True)
class Flood:
    """Milliseconds from writing the request of a tenant to reading its job on a stream.

    `jobs` are those of the other tenants, and `drained` of the flood went out in a second
    meanwhile.
    """

    case: str
    jobs: int
    p50: float
    p99: float
    worst: float
    drained: float


class Counting(Waiting):
    """A worker that also counts the jobs of the flood: its numbers are negative."""

    def __init__(self) -> None:
        super().__init__()
        self.flood = 0

    def on_lines(self, text: bytes) -> None:
        self.flood += text.count(FLOOD)
        super().on_lines(text)


def flood_request(first: int, *, keyed: bool) -> bytes:
    """A bulk of the tenant that floods."""
    plain = {"queue": "queue-0", "type": "flood"} | ({"fair_key": "flood"} if keyed else {})
    jobs = [plain | {"payload": {"n": -number}} for number in range(first + 1, first + BULK + 1)]
    return post("/jobs/bulk", orjson.dumps({"jobs": jobs}))


async def store(target: Target, jobs: int, *, keyed: bool) -> None:
    """Have a tenant store its flood."""
    session = Session(target.port)
    try:
        bulks = [flood_request(first, keyed=keyed) for first in range(0, jobs, BULK)]
        flood = Producer(Meter("flood"), bulks, BULK, allowance=jobs)
        for _ in range(FLOOD_CONNECTIONS):
            flood.use(await session.connect(lambda: Connection(flood.on_reply)))
        await session.until(lambda: flood.meter.jobs >= jobs, FLOOD_SECONDS)
    finally:
        session.close()


async def send(target: Target, seconds: float, *, keyed: bool) -> dict[int, float]:
    """Have the other tenants send their jobs. Return when each was sent."""

    def share(number: int) -> dict[str, object]:
        return {"fair_key": f"tenant-{number % TENANTS}"} if keyed else {}

    session = Session(target.port)
    try:
        others = Steady(1, share)
        for _ in range(CONNECTIONS):
            others.use(await session.connect(lambda: Connection(others.on_reply)))
        await pace(session, others.enqueue, TENANTS, seconds)
        await session.until(lambda: others.is_idle(CONNECTIONS), LAST_JOB_SECONDS)
    finally:
        session.close()
    return others.sent


async def drive(target: Target, case: str, jobs: int, seconds: float) -> tuple[list[float], float]:
    """Seconds that each job of the others has waited, and jobs of the flood a second."""
    keyed = case == "fair keys"
    if case != "no flood":
        await store(target, jobs, keyed=keyed)
    session = Session(target.port)
    try:
        worker = Counting()
        worker.use(await session.connect(lambda: Connection(worker.on_reply)))
        path = f"/jobs/take?prefetch={PREFETCH}"
        for _ in range(WORKERS):
            await session.connect(lambda: TakeStream(path, worker.on_lines))
        began = perf_counter()
        sent = await send(target, seconds, keyed=keyed)
        drained = worker.flood / (perf_counter() - began)
        await session.until(lambda: sent.keys() <= worker.arrived.keys(), FLOOD_SECONDS)
    finally:
        session.close()
    return [worker.arrived[number] - at for number, at in sent.items()], drained


def run_drive(target: Target, case: str, jobs: int, seconds: float) -> tuple[list[float], float]:
    return run(drive(target, case, jobs, seconds))


def flood(lab: Lab, jobs: int, seconds: float, progress: Progress) -> list[Flood]:
    """Every case on a server of its own."""
    found = []
    for case in CASES:
        progress.show(case)
        with lab.server("zq") as target:
            waits, drained = in_own_process(run_drive, target, case, jobs, seconds)
        p50, p99 = percentiles(waits)
        found.append(Flood(case, len(waits), p50 * 1e3, p99 * 1e3, max(waits) * 1e3, drained))
    progress.clear()
    return found


def flood_table(found: list[Flood]) -> Table:
    """A line a case."""
    header = ["case", "jobs of others", "p50 ms", "p99 ms", "worst ms", "flood drained, jobs/s"]
    lines = [
        [
            *(each.case, number(each.jobs)),
            *(number(ms, 1) for ms in (each.p50, each.p99, each.worst)),
            number(each.drained),
        ]
        for each in found
    ]
    return Table(header, lines)
