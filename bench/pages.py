"""How many pages each kind of tick writes to the log, and to which tables and indexes they belong.

Ticks run alone, without a server. The log is emptied before each tick. After the tick, every frame
in the log is a page that the commit wrote there, and that a checkpoint writes once more.
"""

from __future__ import annotations

import sqlite3
import statistics
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.report import Progress, Table, number
from bench.servers import Lab
from bench.ticks import NOW, Ticks, new_job
from zq.model.commands import Due, Fail, Return, Succeed
from zq.model.settling import Failure
from zq.store.sqlite import upkeep

WAL_HEADER = 32
FRAME_HEADER = 24
PAGE = 4096
BACKLOG = 40_000
ELSEWHERE = "free, maps"

Prepared = Callable[[], object]
"""The tick that is measured. Its preparation is done before."""


@dataclass(frozen=True)
class Kind:
    """A kind of tick. `prepare` does the work before it, and returns the tick."""

    name: str
    jobs: int
    prepare: Callable[[Ticks, Iterator[int], int], Prepared]


@dataclass(frozen=True)
class Pages:
    """The result of one kind: median pages a commit, and the mean of each table and index."""

    kind: str
    jobs: int
    pages: float
    of: dict[str, float] = field(default_factory=dict)


def enqueues(count: int, **rest: object) -> Callable[[Ticks, Iterator[int], int], Prepared]:
    """Requests of one job each, `count` in a tick."""

    def prepare(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
        commands = [ticks.enqueue([new_job(next(numbers), queues, **rest)]) for _ in range(count)]
        return lambda: ticks.run(*commands)

    return prepare


def bulk(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
    command = ticks.enqueue([new_job(next(numbers), queues) for _ in range(1000)])
    return lambda: ticks.run(command)


def claims(count: int) -> Callable[[Ticks, Iterator[int], int], Prepared]:
    return lambda ticks, numbers, queues: lambda: ticks.run(claim=count)


def successes(count: int, claim: int = 0) -> Callable[[Ticks, Iterator[int], int], Prepared]:
    """Acknowledgements of `count` jobs, and a claim of `claim` jobs in the same tick."""

    def prepare(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
        command = Succeed(keys=ticks.claim(count))
        return lambda: ticks.run(command, claim=claim)

    return prepare


def failure(kill: bool) -> Callable[[Ticks, Iterator[int], int], Prepared]:
    def prepare(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
        (key,) = ticks.claim(1)
        return lambda: ticks.run(Fail(key=key, failure=Failure("no connection", kill=kill)))

    return prepare


def give_back(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
    keys = ticks.claim(4)[:1]
    return lambda: ticks.run(Return(holder=1, keys=keys))


def through(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
    """A job that one commit stores and hands to a waiting worker."""
    urgent = ticks.enqueue([new_job(next(numbers), queues, priority=0)])
    return lambda: ticks.run(urgent, claim=1)


def promotion(ticks: Ticks, numbers: Iterator[int], queues: int) -> Prepared:
    late = [new_job(next(numbers), queues, ready_at=NOW + 1) for _ in range(100)]
    ticks.run(ticks.enqueue(late))
    return lambda: ticks.run(due=frozenset({Due.PROMOTION}), now=NOW + 1)


KINDS = (
    Kind("enqueue, 1 request", 1, enqueues(1)),
    Kind("enqueue, 8 requests", 8, enqueues(8)),
    Kind("enqueue, 64 requests", 64, enqueues(64)),
    Kind("enqueue, 1 of a group", 1, enqueues(1, group="group-1")),
    Kind("enqueue, 1 for later", 1, enqueues(1, ready_at=NOW + 3_600_000)),
    Kind("enqueue, a bulk of 1,000", 1000, bulk),
    Kind("take 1", 1, claims(1)),
    Kind("take 100", 100, claims(100)),
    Kind("take 1,000", 1000, claims(1000)),
    Kind("enqueue 1 and hand it out", 1, through),
    Kind("acknowledge 1", 1, successes(1)),
    Kind("acknowledge 64", 64, successes(64)),
    Kind("acknowledge 1, take 1", 1, successes(1, 1)),
    Kind("acknowledge 50, take 50", 50, successes(50, 50)),
    Kind("acknowledge 1,000, take 1,000", 1000, successes(1000, 1000)),
    Kind("fail 1, to be tried again", 1, failure(kill=False)),
    Kind("fail 1, dead", 1, failure(kill=True)),
    Kind("give 1 back", 1, give_back),
    Kind("100 fall due", 100, promotion),
)


def pages(lab: Lab, queues: int, ticks: int, progress: Progress) -> list[Pages]:
    """Every kind on a database with a backlog: `ticks` ticks of each."""
    found = []
    for place, kind in enumerate(KINDS):
        progress.show(kind.name)
        path = lab.directory / f"pages-{place}.db"
        found.append(measured(path, kind, queues, ticks))
        for left in path.parent.glob(f"{path.name}*"):
            left.unlink()
    progress.clear()
    return found


def measured(path: Path, kind: Kind, queues: int, count: int) -> Pages:
    ticks = Ticks(path)
    ticks.store([new_job(number, queues) for number in range(BACKLOG)])
    numbers = iter(range(BACKLOG, 10**9))
    counts: list[int] = []
    of: Counter[str] = Counter()
    for turn in range(count + 1):
        run = kind.prepare(ticks, numbers, queues)
        upkeep.shrink_wal(ticks.connection)
        run()
        written = pages_written(path)
        if turn:  # the first tick raises the mark below which keys are taken
            counts.append(len(written))
            names = owners(ticks.connection)
            of.update(names.get(page, ELSEWHERE) for page in written)
    ticks.connection.close()
    mean = {name: pages / count for name, pages in of.items()}
    return Pages(kind.name, kind.jobs, statistics.median(counts), mean)


def pages_written(path: Path) -> list[int]:
    """The page number of every frame in the log."""
    log = Path(f"{path}-wal").read_bytes()
    frames = range(WAL_HEADER, len(log), FRAME_HEADER + PAGE)
    return [struct.unpack_from(">I", log, start)[0] for start in frames]


def owners(connection: sqlite3.Connection) -> dict[int, str]:
    """The table or index of each page."""
    return dict(connection.execute("SELECT pageno, name FROM dbstat"))


def pages_table(found: list[Pages]) -> Table:
    """A line a kind: the mean of pages a commit for each table and index that any kind writes."""
    names = Counter[str]()
    for each in found:
        names.update(each.of)
    columns = [name for name, _ in names.most_common()]
    header = ["tick", "pages a commit", "a job", *columns]
    lines = [
        [
            each.kind,
            number(each.pages),
            number(each.pages / each.jobs, 2),
            *(number(each.of[name], 1) if name in each.of else "" for name in columns),
        ]
        for each in found
    ]
    return Table(header, lines)
