"""From enqueue to delivery: how long a job takes to reach a worker that waits for it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import orjson

from bench.actors import ID, acknowledgement, job, percentiles
from bench.http1 import Connection, TakeStream, post
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab

NUMBER = re.compile(rb'"n":(\d+)')
PREFETCH = 1000
CONNECTIONS = 64
WARM_UP = 1.0
LAST_JOB_SECONDS = 60.0
IDLE_RATE = 20
BUSY_RATE = 1000


@dataclass(frozen=True)
class Delivery:
    """Milliseconds from writing the enqueue request to reading the job on the stream."""

    server: str
    rate: int
    jobs: int
    p50: float
    p99: float
    worst: float


class Waiting:
    """A worker that notes when each job arrived, and acknowledges all it has in one request."""

    def __init__(self) -> None:
        self.arrived: dict[int, float] = {}
        self._ids: list[bytes] = []
        self._resting: Connection | None = None

    def on_lines(self, text: bytes) -> None:
        now = perf_counter()
        self.arrived.update((int(number), now) for number in NUMBER.findall(text))
        self._ids += ID.findall(text)
        self._post()

    def use(self, connection: Connection) -> None:
        self._resting = connection
        self._post()

    def on_reply(self, connection: Connection, seconds: float) -> None:
        self.use(connection)

    def _post(self) -> None:
        if self._resting and self._ids:
            connection, self._resting = self._resting, None
            ids, self._ids = self._ids, []
            connection.send(acknowledgement(ids))


def no_share(number: int) -> dict[str, object]:
    """Jobs have no fair keys."""
    return {}


class Steady:
    """Enqueues jobs, one in a request. A job waits here while all connections are busy."""

    def __init__(self, queues: int, share: Callable[[int], dict[str, object]] = no_share) -> None:
        """`share` gives the fair key of a job by its number."""
        self.sent: dict[int, float] = {}
        self._queues = queues
        self._share = share
        self._due: deque[int] = deque()
        self._resting: deque[Connection] = deque()
        """Those that have rested longest come first: a server closes a connection that sends no
        request in the time of a header."""

    def enqueue(self, number: int) -> None:
        self.sent[number] = perf_counter()
        self._due.append(number)
        self._post()

    def use(self, connection: Connection) -> None:
        self._resting.append(connection)
        self._post()

    def on_reply(self, connection: Connection, seconds: float) -> None:
        self.use(connection)

    def is_idle(self, connections: int) -> bool:
        """True if all jobs are stored."""
        return len(self._resting) == connections and not self._due

    def _post(self) -> None:
        while self._resting and self._due:
            number = self._due.popleft()
            body = orjson.dumps(job(number, self._queues) | self._share(number))
            self._resting.popleft().send(post("/jobs", body))


async def deliver(target: Target, queues: int, rate: int, seconds: float) -> list[float]:
    """Seconds from enqueue to delivery of each job after the warm-up."""
    session = Session(target.port)
    try:
        worker, producer = Waiting(), Steady(queues)
        worker.use(await session.connect(lambda: Connection(worker.on_reply)))
        path = f"/jobs/take?prefetch={PREFETCH}"
        await session.connect(lambda: TakeStream(path, worker.on_lines))
        for _ in range(CONNECTIONS):
            producer.use(await session.connect(lambda: Connection(producer.on_reply)))
        await pace(session, producer.enqueue, rate, WARM_UP + seconds)
        await session.until(lambda: len(worker.arrived) == len(producer.sent), LAST_JOB_SECONDS)
    finally:
        session.close()
    first = round(rate * WARM_UP)
    return [worker.arrived[n] - producer.sent[n] for n in producer.sent if n >= first]


async def pace(session: Session, enqueue: Callable[[int], None], rate: int, seconds: float) -> None:
    """Enqueue at fixed times, whether or not the server keeps up."""
    began = perf_counter()
    for sent in range(round(rate * seconds)):
        wait = began + sent / rate - perf_counter()
        if wait > 0:
            await session.pause(wait)
        enqueue(sent)


def run_deliver(target: Target, queues: int, rate: int, seconds: float) -> list[float]:
    return run(deliver(target, queues, rate, seconds))


def latency(
    lab: Lab, servers: list[str], queues: int, seconds: float, progress: Progress
) -> list[Delivery]:
    """Each server with an idle worker (few jobs) and at a steady rate."""
    deliveries = []
    for server in servers:
        for rate in (IDLE_RATE, BUSY_RATE):
            progress.show(f"{server}: {rate} jobs/s")
            with lab.server(server) as target:
                times = in_own_process(run_deliver, target, queues, rate, seconds)
            p50, p99 = percentiles(times)
            worst = max(times)
            deliveries.append(Delivery(server, rate, len(times), p50 * 1e3, p99 * 1e3, worst * 1e3))
    progress.clear()
    return deliveries


def latency_table(deliveries: list[Delivery]) -> Table:
    lines = []
    for each in deliveries:
        times = [number(ms, 2) for ms in (each.p50, each.p99, each.worst)]
        lines.append([each.server, number(each.rate), number(each.jobs), *times])
    return Table(["server", "jobs/s", "jobs", "p50 ms", "p99 ms", "worst ms"], lines)
