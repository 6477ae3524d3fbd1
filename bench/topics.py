"""Topics: records appended and read beside jobs enqueued and taken, and reads by depth."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass

import orjson

from bench.actors import BULK, RENDERED_BULKS, Measure, Meter, Producer, job
from bench.http1 import post
from bench.load import (
    FILL_CONNECTIONS,
    FILL_SECONDS,
    Session,
    Target,
    in_own_process,
    produce,
    run,
    run_load,
)
from bench.report import Progress, Table, number
from bench.rows import ROWS, WARM_UP
from bench.servers import Lab

TOPIC = "bench"
READ_AT = 500
"""Cursors at which a topic is read, one after the other."""

NATIVE = {"append": "bulk", "diff": "take-1000"}
CONNECTIONS = 4
ROUNDS = 3
READ_RECORDS = 200_000


@dataclass(frozen=True)
class TopicRun:
    """One row once. A row by a number reads a topic of so many records."""

    row: str | int
    measure: Measure


def appends(topic: str, **config: object) -> list[bytes]:
    """Requests that append records. The first one creates the topic."""

    def body(first: int) -> bytes:
        records = [{"data": job(n, 1)["payload"]} for n in range(first, first + BULK)]
        return orjson.dumps({"records": records, "config": config})

    firsts = range(0, RENDERED_BULKS * BULK, BULK)
    return [post(f"/v0/topics/{topic}?return_seqs=false", body(first)) for first in firsts]


def reads(topic: str, records: int) -> list[bytes]:
    """Requests for pages at random cursors, each of them full."""
    chosen = random.Random(1)
    cursors = [chosen.randint(0, records - BULK) for _ in range(READ_AT)]
    bodies = [orjson.dumps({"from_seq": cursor, "limit": BULK}) for cursor in cursors]
    return [post(f"/v0/topics/{topic}/diff", body) for body in bodies]


async def appending(target: Target, seconds: float) -> Measure:
    session = Session(target.port)
    try:
        return await _measured(session, appends(TOPIC), CONNECTIONS, seconds)
    finally:
        session.close()


async def reading(target: Target, records: int, connections: int, seconds: float) -> Measure:
    session = Session(target.port)
    try:
        allowance = math.ceil(records / BULK) * BULK
        filler = Producer(Meter("fill"), appends(TOPIC), BULK, allowance)
        await produce(session, filler, FILL_CONNECTIONS)
        await session.until(lambda: filler.meter.jobs >= records, FILL_SECONDS)
        return await _measured(session, reads(TOPIC, records), connections, seconds)
    finally:
        session.close()


async def _measured(
    session: Session, requests: list[bytes], connections: int, seconds: float
) -> Measure:
    producer = Producer(Meter("records"), requests, BULK, allowance=math.inf)
    await produce(session, producer, connections)
    await session.pause(min(WARM_UP, seconds))
    producer.meter.reset()
    took = await session.lasts(seconds, lambda: producer.meter.jobs > 0)
    return producer.meter.read(took)


def run_appends(target: Target, seconds: float) -> Measure:
    return run(appending(target, seconds))


def run_reads(target: Target, records: int, connections: int, seconds: float) -> Measure:
    return run(reading(target, records, connections, seconds))


def topics(
    lab: Lab, sizes: list[int], seconds: float, queues: int, show: Progress
) -> list[TopicRun]:
    """The rows of topics and their native ones in turn, or one reader of topics of some sizes.

    Each has a fresh server.
    """
    if sizes:
        return [depth(lab, records, seconds, show) for records in sizes]
    found = []
    for turn in range(ROUNDS):
        for row in (name for pair in NATIVE.items() for name in pair):
            show.show(f"round {turn + 1}/{ROUNDS} {row}")
            with lab.server("zq") as target:
                found.append(TopicRun(row, rate(target, row, queues, seconds)))
    show.clear()
    return found


def rate(target: Target, row: str, queues: int, seconds: float) -> Measure:
    """One row on a fresh server."""
    if row == "append":
        return in_own_process(run_appends, target, seconds)
    if row == "diff":
        return in_own_process(run_reads, target, READ_RECORDS, CONNECTIONS, seconds)
    result = in_own_process(run_load, target, ROWS[row].spec(queues, seconds))
    return result.measures[0]


def depth(lab: Lab, records: int, seconds: float, show: Progress) -> TopicRun:
    """One reader at random cursors of a topic with so many records."""
    show.show(f"{records:,} records")
    with lab.server("zq") as target:
        measure = in_own_process(run_reads, target, records, 1, seconds)
    show.clear()
    return TopicRun(records, measure)


def topics_table(found: list[TopicRun]) -> Table:
    """Rates beside the native rows, or times beside the first size."""
    if isinstance(found[0].row, int):
        return _depths(found)
    lines = []
    for row, native in NATIVE.items():
        base = statistics.median(_rates(found, native))
        for name in (row, native):
            rates, p50 = (
                _rates(found, name),
                [each.measure.p50 for each in found if each.row == name],
            )
            middle = statistics.median(rates)
            cells = [name, number(middle), f"{number(min(rates))}-{number(max(rates))}"]
            lines.append([*cells, number(statistics.median(p50), 2), number(middle / base, 2)])
    return Table(["row", "records/s", "low-high", "p50 ms", "ratio"], lines)


def _depths(found: list[TopicRun]) -> Table:
    first = found[0].measure.p50
    lines = []
    for each in found:
        measure = each.measure
        cells = [number(int(each.row)), number(measure.rate), number(measure.p50, 2)]
        lines.append([*cells, number(measure.p99, 2), number(measure.p50 / first, 2)])
    return Table(["records", "records/s", "p50 ms", "p99 ms", "p50 / first"], lines)


def _rates(found: list[TopicRun], row: str) -> list[float]:
    return [each.measure.rate for each in found if each.row == row]
