"""A steady load for a long time, to see whether anything in the server grows."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import proc
from bench.actors import BULK, Meter, Producer, bulk_requests, single_requests
from bench.load import (
    LoadSpec,
    Session,
    Target,
    Workers,
    in_own_process,
    produce,
    run,
    run_load,
    take,
)
from bench.report import Progress
from bench.servers import Lab

WORKERS = Workers(count=4, prefetch=1000, acks=100, posts=1)
QUEUES = 10
PROBE = LoadSpec(
    queues=QUEUES, seconds=5, warm_up=1, bulk=4, workers=WORKERS, backlog=50_000, top_up=True
)
SINGLES = 0.05
"""The share of the jobs that come one in a request."""

BACKLOG = 20_000
"""At most so many jobs wait. Above that the load pauses."""

PACE_S = 0.05
LATE_S = 1.0
"""A load that was late itself catches up for this long. More would be a burst."""


@dataclass(frozen=True)
class Sample:
    """The server at one moment."""

    seconds: float
    rss_mb: float
    descriptors: int
    file_mb: float
    wal_mb: float


@dataclass(frozen=True)
class Slope:
    """A straight line fitted by least squares to the second half of the samples."""

    name: str
    mean: float
    per_hour: float
    error: float
    """The standard error of `per_hour`."""


@dataclass(frozen=True)
class Soak:
    """Rates in jobs a second: the most the server can do, the rate asked for, and the rate done."""

    most: float
    asked: float
    done: float
    minutes: float
    slopes: list[Slope]
    samples: list[Sample]


def soak(place: Lab, minutes: float, share: float, progress: Progress) -> Soak:
    """Find the most that the server can do, then load it with a share of that for `minutes`."""
    with place.server("zq") as target:
        progress.show("looking for the rate that the server can do")
        most = in_own_process(run_load, target, PROBE).measures[-1].rate
    with place.server("zq") as target:
        asked = most * share
        done, samples = in_own_process(_run, target, asked, minutes * 60)
    fields = [name for name in asdict(samples[0]) if name != "seconds"]
    late = samples[len(samples) // 2 :]
    slopes = [slope(name, late) for name in fields]
    return Soak(most, asked, done, minutes, slopes, samples)


def slope(name: str, samples: list[Sample]) -> Slope:
    """Fit one figure over time."""
    hours = [sample.seconds / 3600 for sample in samples]
    values = [float(getattr(sample, name)) for sample in samples]
    line = statistics.linear_regression(hours, values)
    rest = [y - line.slope * x - line.intercept for x, y in zip(hours, values, strict=True)]
    spread = sum((x - statistics.fmean(hours)) ** 2 for x in hours)
    error = (sum(r * r for r in rest) / (len(rest) - 2) / spread) ** 0.5
    return Slope(name, statistics.fmean(values), line.slope, error)


def _run(target: Target, rate: float, seconds: float) -> tuple[float, list[Sample]]:
    return run(_steady(target, rate, seconds))


async def _steady(target: Target, rate: float, seconds: float) -> tuple[float, list[Sample]]:
    session = Session(target.port)
    bulk = Producer(Meter("bulk"), bulk_requests(QUEUES), BULK, allowance=0)
    single = Producer(Meter("single"), single_requests(QUEUES), 1, allowance=0)
    acked = Meter("ack")
    samples: list[Sample] = []
    try:
        await produce(session, bulk, 4)
        await produce(session, single, 16)
        for _ in range(WORKERS.count):
            await take(session, WORKERS, acked, None)
        began = last = time.monotonic()
        while (elapsed := time.monotonic() - began) < seconds:
            await session.pause(PACE_S)
            granted, last = rate * min(time.monotonic() - last, LATE_S), time.monotonic()
            # A growing backlog would make the file grow, and hide any other growth.
            if bulk.meter.jobs + single.meter.jobs - acked.jobs < BACKLOG:
                bulk.grant(round(granted * (1 - SINGLES)))
                single.grant(round(granted * SINGLES))
            if elapsed >= len(samples):
                samples.append(await asyncio.to_thread(sample, target.pid, elapsed))
                for meter in (bulk.meter, single.meter, acked):
                    meter.latencies.clear()
        return acked.jobs / elapsed, samples
    finally:
        session.close()


def sample(pid: int, seconds: float) -> Sample:
    """Look at a server's process and at the files that it has open."""
    links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    sizes = {suffix: _size(links, suffix) for suffix in ("zq.db", "zq.db-wal")}
    return Sample(
        seconds=seconds,
        rss_mb=proc.rss_mb(pid),
        descriptors=len(links),
        file_mb=sizes["zq.db"],
        wal_mb=sizes["zq.db-wal"],
    )


def _size(links: list[str], suffix: str) -> float:
    return next((Path(link).stat().st_size for link in links if link.endswith(suffix)), 0) / 2**20
