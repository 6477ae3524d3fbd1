"""The messages between the harness and the programs that it starts, as plain data.

A program gets its `Site` from the variable PEERS_SITE and, if it enqueues, its `Order` as an
argument; both are JSON. A producer prints one `Receipt`. Workers append `Report`s, one a line, to
the site's report file. Times are `time.perf_counter()`, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

SITE_VARIABLE = "PEERS_SITE"
LONG_AGO = -1e9
TRIES = 11  # a job that fails is retried ten times


@dataclass(frozen=True)
class Site:
    """Where the data of the peer is, and how its handlers behave.

    `address` is the place that the peer's client connects to: a URL, `host:port` or a data source
    name. It is empty if the peer lives in a file below `directory`. With `fair`, jobs bring their
    users as fair keys, where the peer has them.
    """

    address: str
    directory: str
    report: str
    mode: str
    concurrency: int = 1
    results: bool = False
    failing: bool = False
    detail: bool = False
    fair: bool = False

    def environment(self) -> dict[str, str]:
        return {SITE_VARIABLE: json.dumps(asdict(self))}


def site() -> Site:
    """The site of this process. Raises KeyError if no harness started it."""
    return Site(**json.loads(os.environ[SITE_VARIABLE]))


@dataclass(frozen=True)
class Order:
    """Enqueue `jobs`, `batch` a call, from `callers` at once, for at most `seconds`.

    With `rate` (jobs/s) they go out at fixed times. With `delay` (seconds) all of them are due at
    the same time, that long after the start. With `call` a caller waits for each job's result. With
    `users` the jobs belong to so many users in turn. With `flood` all belong to one user, and were
    due at `LONG_AGO`.
    """

    jobs: int
    seconds: float
    callers: int = 1
    batch: int = 1
    rate: float = 0.0
    delay: float = 0.0
    call: bool = False
    users: int = 0
    flood: bool = False


@dataclass(frozen=True)
class Receipt:
    """`jobs` acknowledged in `seconds` since `began`, with `cpu` seconds of the producer. The round
    trips are in seconds, for calls only."""

    jobs: int
    began: float
    seconds: float
    cpu: float
    times: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """So far `count` handlers have run in process `pid`, the first and the last at these times.

    `late` holds the delays since the last report, in seconds from when a job was due.
    """

    pid: int
    count: int
    first: float
    last: float
    late: list[float] = field(default_factory=list)


def dump(message: Order | Receipt | Report) -> str:
    return json.dumps(asdict(message))


def load_order(text: str) -> Order:
    return Order(**json.loads(text))


def load_receipt(text: str) -> Receipt:
    return Receipt(**json.loads(text))


def load_report(text: str) -> Report:
    return Report(**json.loads(text))


def job(number: int, at: float, order: Order) -> dict[str, Any]:
    """The payload of every job for every peer. `at` is when it was due to be enqueued or to run."""
    if order.flood:
        return {"n": number, "user": "flood", "at": LONG_AGO}
    user = number % order.users if order.users else number
    return {"n": number, "user": f"u-{user:06d}", "at": at}
