"""The rows of the comparison, as data."""

from __future__ import annotations

from dataclasses import dataclass

from bench.load import LoadSpec, Workers

WARM_UP = 0.5


@dataclass(frozen=True)
class Row:
    """One load. `pace` is a rate in jobs/s that no server reaches. It sizes the backlog to take."""

    title: str
    bulk: int = 0
    single: int = 0
    workers: Workers | None = None
    pace: int = 0
    depth: int = 0
    groups: int = 0
    folds: int = 0
    numbered: bool = False
    keys: int = 0
    budgets: int = 0

    def spec(self, queues: int, seconds: float) -> LoadSpec:
        warm_up = min(WARM_UP, seconds)
        return LoadSpec(
            queues=queues,
            seconds=seconds,
            warm_up=warm_up,
            bulk=self.bulk,
            single=self.single,
            workers=self.workers,
            backlog=self.depth or round(self.pace * (warm_up + seconds)),
            top_up=self.depth > 0,
            groups=self.groups,
            folds=self.folds,
            numbered=self.numbered,
            keys=self.keys,
            budgets=self.budgets,
        )


SHARED = (1, 1_000, 100_000)
"""How many fair keys, or budgets, the jobs of some rows have."""

HUNDRED = Workers(count=4, prefetch=100, acks=50, posts=1)
LARGE = Workers(count=4, prefetch=1000, acks=250, posts=1)
ROWS = {
    "bulk": Row("bulk enqueue, 1,000 a request, 4 connections", bulk=4),
    "producer": Row(
        "bulk as above, each connection a producer with numbers", bulk=4, numbered=True
    ),
    "single": Row("single enqueue, 64 connections", single=64),
    "single-1": Row("single enqueue, one connection", single=1),
    "single-8": Row("single enqueue, 8 connections", single=8),
    "single-256": Row("single enqueue, 256 connections", single=256),
    "both": Row("bulk and single enqueue at once", bulk=4, single=64),
    "take-1000": Row(
        "take, 4 workers, prefetch 1,000, 250 acks a post", workers=LARGE, pace=300_000
    ),
    "take-100": Row(
        "take, 4 workers, prefetch 100, 50 acks a post",
        workers=HUNDRED,
        pace=200_000,
    ),
    "take-50": Row(
        "take, 8 workers, prefetch 50, 10 acks a post",
        workers=Workers(count=8, prefetch=50, acks=10, posts=1),
        pace=100_000,
    ),
    "life": Row("take as take-1000, enqueue as many", bulk=4, workers=LARGE, depth=50_000),
    "groups": Row(
        "life, with the jobs in 5,000 FIFO groups and 4 hot ones",
        bulk=4,
        workers=LARGE,
        depth=50_000,
        groups=5_000,
    ),
    "folds": Row(
        "single enqueue into one batch, 1,000 jobs a host, 64 connections", single=64, folds=1_000
    ),
    "ack": Row(
        "take, 4 workers, prefetch 1,000, single acks, 64 connections",
        workers=Workers(count=4, prefetch=1000, acks=1, posts=16),
        pace=50_000,
    ),
    **{
        f"fair-{n}": Row(
            f"take-100, with jobs of {n:,} fair keys", workers=HUNDRED, pace=100_000, keys=n
        )
        for n in SHARED
    },
    **{
        f"budgets-{n}": Row(
            f"take-100, with jobs of {n:,} budgets", workers=HUNDRED, pace=100_000, budgets=n
        )
        for n in SHARED
    },
}
