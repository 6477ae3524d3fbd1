"""What waits at the servers now, which no history has: only the servers can tell."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from zq.client.backend import run
from zq.client.errors import ZqError
from zq.client.http.address import Address, Tls
from zq.client.http.backend import HttpBackend
from zq.client.http.blocking import BlockingTransport
from zq.client.values import State
from zq.spark.errors import StatsUnread

UNFINISHED: tuple[State, ...] = ("ready", "scheduled", "in_flight")


class WaitingQueue(NamedTuple):
    """The unfinished jobs of a queue, on all servers together."""

    queue: str
    ready: int
    scheduled: int
    in_flight: int


class WaitingNow(NamedTuple):
    """The unfinished jobs at a time (Unix ms), the queues with the most ready jobs first."""

    at: int
    servers: Sequence[str]
    queues: Sequence[WaitingQueue]


def ask(urls: Sequence[str], token: str | None) -> WaitingNow:
    """Ask each server for its counts. Raises `StatsUnread`."""
    found: Counter[tuple[str, str]] = Counter()
    for url in urls:
        try:
            address = Address(url.rstrip("/"), token, tls=Tls.of_environment())
            stats = run(HttpBackend(address, BlockingTransport(address)).stats())
        except ZqError as error:
            raise StatsUnread(f"{url} does not tell what waits there: {error}") from error
        for each in stats:
            found.update({(each.queue, name): each.counts.get(name, 0) for name in UNFINISHED})
    names = {queue for (queue, _), n in found.items() if n}
    queues = [WaitingQueue(q, *(found[q, name] for name in UNFINISHED)) for q in sorted(names)]
    queues.sort(key=lambda each: -each.ready)
    return WaitingNow(time.time_ns() // 1_000_000, urls, queues)
