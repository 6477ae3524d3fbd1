"""How long a lone caller waits while large requests or checkpoints keep the server busy.

The caller posts a job, waits for its answer, pauses, and posts the next. Its requests come at
random moments: if the server is blocked a tenth of the time, a tenth of the requests is delayed.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from bench.actors import Meter, Producer, job, percentiles
from bench.compare import turned
from bench.http1 import Connection, post
from bench.load import Session, Target, in_own_process, run
from bench.report import Progress, Table, number
from bench.servers import Lab

WARM_UP = 1.0
REST = 0.005
BULK = 10_000
LARGE = 64 * 1024
LARGE_A_REQUEST = 16
LARGE_PAUSE = 0.05
"""One MiB is sent every so many seconds. A log of 4 MiB is then full five times a second."""

COMPANIONS = {
    "alone": "nobody else",
    "bulks": f"one who posts {BULK:,} jobs, again and again",
    "checkpoints": "one who posts 16 payloads of 64 KiB, 20 times a second",
}


class Caller:
    """Sends one request at a time, and pauses after each answer."""

    def __init__(self, requests: list[bytes]) -> None:
        self.waits: list[float] = []
        self._requests = itertools.cycle(requests)

    def use(self, connection: Connection) -> None:
        connection.send(next(self._requests))

    def on_reply(self, connection: Connection, seconds: float) -> None:
        self.waits.append(seconds)
        asyncio.get_running_loop().call_later(REST, self.use, connection)


@dataclass(frozen=True)
class Waited:
    """A lone caller's round trips in one round, in ms, and the companion's stored jobs a second."""

    server: str
    companion: str
    p50: float
    p99: float
    worst: float
    beside: float


async def wait_beside(
    target: Target, companion: str, queues: int, seconds: float
) -> tuple[list[float], float]:
    """Seconds of each round trip after the warm-up, and the companion's jobs a second."""
    session = Session(target.port)
    meter = Meter(companion)
    try:
        company = asyncio.ensure_future(keep_company(session, companion, meter, queues))
        requests = [post("/jobs", orjson.dumps(job(number, queues))) for number in range(1000)]
        caller = Caller(requests)
        caller.use(await session.connect(lambda: Connection(caller.on_reply)))
        await session.pause(min(WARM_UP, seconds))
        caller.waits.clear()
        meter.reset()
        is_alone = companion == "alone"
        took = await session.lasts(
            seconds, lambda: caller.waits != [] and (is_alone or meter.jobs > 0)
        )
        company.cancel()
    finally:
        session.close()
    return caller.waits, meter.jobs / took


async def keep_company(session: Session, companion: str, meter: Meter, queues: int) -> None:
    if companion == "bulks":
        jobs = [job(number, queues) for number in range(BULK)]
        request = post("/jobs/bulk", orjson.dumps({"jobs": jobs}))
        bulk = Producer(meter, [request], BULK, allowance=float("inf"))
        bulk.use(await session.connect(lambda: Connection(bulk.on_reply)))
    elif companion == "checkpoints":
        jobs = [job(number, queues) | {"payload": "x" * LARGE} for number in range(LARGE_A_REQUEST)]
        request = post("/jobs/bulk", orjson.dumps({"jobs": jobs}))
        large = Producer(meter, [request], LARGE_A_REQUEST, allowance=0)
        large.use(await session.connect(lambda: Connection(large.on_reply)))
        while True:
            large.grant(LARGE_A_REQUEST)
            await asyncio.sleep(LARGE_PAUSE)


def run_beside(
    target: Target, companion: str, queues: int, seconds: float
) -> tuple[list[float], float]:
    return run(wait_beside(target, companion, queues, seconds))


def beside(
    lab: Lab, servers: list[str], rounds: int, seconds: float, queues: int, progress: Progress
) -> list[Waited]:
    """Every companion on every server, each freshly started; rounds interleave."""
    found = []
    for turn in range(rounds):
        for companion in COMPANIONS:
            for server in turned(servers, turn):
                progress.show(f"round {turn + 1}/{rounds} {companion}: {server}")
                with lab.server(server) as target:
                    waits, rate = in_own_process(run_beside, target, companion, queues, seconds)
                p50, p99 = percentiles(waits)
                found.append(
                    Waited(server, companion, p50 * 1e3, p99 * 1e3, max(waits) * 1e3, rate)
                )
    progress.clear()
    return found


def beside_table(found: list[Waited]) -> Table:
    """Medians over rounds, and the worst round trip of all. The ratios compare p99."""
    servers = list(dict.fromkeys(each.server for each in found))
    header = ["a lone caller beside", "server", "p50 ms", "p99 ms", "worst ms", "their jobs/s"]
    return Table(
        [*header, f"p99: {servers[0]} / it"],
        [
            line
            for companion in COMPANIONS
            for line in companion_lines(
                servers, companion, [each for each in found if each.companion == companion]
            )
        ],
    )


def companion_lines(servers: list[str], companion: str, found: list[Waited]) -> Iterator[list[str]]:
    p99 = {
        server: statistics.median(each.p99 for each in found if each.server == server)
        for server in servers
    }
    for server in servers:
        of = [each for each in found if each.server == server]
        yield [
            COMPANIONS[companion],
            server,
            number(statistics.median(each.p50 for each in of), 2),
            number(p99[server], 2),
            number(max(each.worst for each in of), 2),
            number(statistics.median(each.beside for each in of)),
            "" if server == servers[0] else number(p99[servers[0]] / p99[server], 2),
        ]
