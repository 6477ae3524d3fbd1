"""Producers and workers that make the load. Requests are rendered before the clock starts."""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from bench.http1 import Connection, post
from bench.http2_wire import Lane

ID = re.compile(rb'"id":"([^"]+)"')
BULK = 1000
RENDERED_BULKS = 20
RENDERED_SINGLES = 5000
HOT_GROUPS = 4
HOT_EVERY = 125
NEVER_SPENT = {"allocation": 1_000_000, "strategy": {"type": "while_in_flight"}}


@dataclass(frozen=True)
class Measure:
    """The figures of one kind of request: a count of jobs, their seconds, round trips in ms."""

    name: str
    jobs: int
    seconds: float
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


@dataclass
class Meter:
    name: str
    jobs: int = 0
    latencies: list[float] = field(default_factory=list)

    def add(self, jobs: int, seconds: float) -> None:
        self.jobs += jobs
        self.latencies.append(seconds)

    def reset(self) -> None:
        self.jobs = 0
        self.latencies.clear()

    def read(self, seconds: float) -> Measure:
        p50, p99 = percentiles(self.latencies)
        return Measure(self.name, self.jobs, seconds, p50 * 1e3, p99 * 1e3)


class Producer:
    """Enqueues as fast as the answers come, until its allowance of jobs is used up."""

    def __init__(
        self, meter: Meter, requests: list[bytes], jobs_each: int, allowance: float
    ) -> None:
        self.meter = meter
        self._requests = itertools.cycle(requests)
        self._jobs_each = jobs_each
        self._allowance = allowance
        self._resting: list[Connection] = []

    def use(self, connection: Connection) -> None:
        if self._allowance < self._jobs_each:
            self._resting.append(connection)
            return
        self._allowance -= self._jobs_each
        connection.send(self._next(connection))

    def _next(self, connection: Connection) -> bytes:
        return next(self._requests)

    def on_reply(self, connection: Connection, seconds: float) -> None:
        self.meter.add(self._jobs_each, seconds)
        self.use(connection)

    def grant(self, jobs: int) -> None:
        self._allowance += jobs
        while self._resting and self._allowance >= self._jobs_each:
            self.use(self._resting.pop(0))  # A server closes a silent connection: use all.


class NumberedProducer(Producer):
    """Each connection is a producer with a memory: its jobs have numbers from 1 on."""

    def __init__(
        self, meter: Meter, requests: list[bytes], jobs_each: int, allowance: float
    ) -> None:
        super().__init__(meter, requests, jobs_each, allowance)
        self._sent: dict[Connection, int] = {}

    def _next(self, connection: Connection) -> bytes:
        sent = self._sent.setdefault(connection, 0)
        self._sent[connection] = sent + self._jobs_each
        name = list(self._sent).index(connection)
        header = f"\r\nZq-Producer: bench-{name}; epoch=1; seq={sent + 1}\r\n"
        return super()._next(connection).replace(b"\r\n", header.encode(), 1)


class Worker:
    """Acknowledges the jobs that one take stream delivers, `acks` ids in a request."""

    def __init__(
        self, meter: Meter, acks: int, on_acked: Callable[[int], None] | None = None
    ) -> None:
        self._meter = meter
        self._acks = acks
        self._on_acked = on_acked
        self._ids: list[bytes] = []
        self._resting: list[Connection | Lane] = []

    def on_lines(self, text: bytes) -> None:
        self._ids += ID.findall(text)
        self._post()

    def use(self, connection: Connection | Lane) -> None:
        self._resting.append(connection)
        self._post()

    def on_reply(self, connection: Connection | Lane, seconds: float) -> None:
        self._meter.add(self._acks, seconds)
        self.use(connection)
        if self._on_acked:
            self._on_acked(self._acks)

    def _post(self) -> None:
        while self._resting and len(self._ids) >= self._acks:
            ids = self._ids[: self._acks]
            del self._ids[: self._acks]
            self._resting.pop().send(acknowledgement(ids))


def acknowledgement(ids: list[bytes]) -> bytes:
    if len(ids) == 1:
        return post(f"/jobs/{ids[0].decode()}/success")
    return post("/jobs/success", b'{"ids":["' + b'","'.join(ids) + b'"]}')


def single_requests(queues: int, folds: int = 0) -> list[bytes]:
    jobs = [job(n, queues) | batch(n, folds) for n in range(RENDERED_SINGLES)]
    return [post("/jobs", orjson.dumps(each)) for each in jobs]


def bulk_requests(queues: int, groups: int = 0, keys: int = 0, budgets: int = 0) -> list[bytes]:
    def one(number: int) -> dict[str, object]:
        return job(number, queues) | group(number, groups) | share(number, keys, budgets)

    def body(first: int) -> bytes:
        return orjson.dumps({"jobs": [one(number) for number in range(first, first + BULK)]})

    bulks = max(RENDERED_BULKS, -(-max(keys, budgets) // BULK))
    return [post("/jobs/bulk", body(first)) for first in range(0, bulks * BULK, BULK)]


def job(number: int, queues: int) -> dict[str, object]:
    payload = {"n": number, "user": f"u-{number:06d}"}
    return {"queue": f"queue-{number % queues}", "type": "send-email", "payload": payload}


def batch(number: int, folds: int) -> dict[str, object]:
    """The batch of a job, with `folds` as the size of a batch; nothing if `folds` is 0."""
    if not folds:
        return {}
    when = f"($existing | length) < {folds}"
    return {
        "payload": [number],
        "batch": {"key": "bench", "when": when, "fold": "$existing + $new"},
    }


def group(number: int, groups: int) -> dict[str, object]:
    """The group of a job; nothing if `groups` is 0. One job in `HOT_EVERY` goes to a hot group."""
    if not groups:
        return {}
    turn, is_cold = divmod(number, HOT_EVERY)
    return {"group": f"group-{number % groups}" if is_cold else f"hot-{turn % HOT_GROUPS}"}


def share(number: int, keys: int, budgets: int) -> dict[str, object]:
    """The fair key of a job, or its budget, which is made for it and is never spent."""
    if keys:
        return {"fair_key": f"key-{number % keys}"}
    if budgets:
        return {"budgets": [{"key": f"budget-{number % budgets}", "create_with": NEVER_SPENT}]}
    return {}


def percentiles(values: list[float]) -> tuple[float, float]:
    """p50 and p99; NaN if there are no values."""
    if len(values) < 2:
        return (float("nan"), float("nan"))
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return cuts[49], cuts[98]
