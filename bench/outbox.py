"""The outbox: how fast its relay moves rows out of PostgreSQL, and how soon a committed row runs.

`relay` moves the rows of a full table to the server. The baselines do its halves: `bulk` enqueues
the same jobs by the same client without a database, and `rows` reads and deletes the rows without a
server. For the wait, a worker runs jobs one after the other: `commit` begins with the commit of a
row of PostgreSQL, which `zq relay` moves, `sqlite` with that of a row in a file of SQLite, and
`enqueue` with the library's own request. The runs of a round alternate, each in a process of its
own beside a fresh server and a fresh database.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

import psycopg

import zq
from bench import proc
from bench.actors import percentiles
from bench.children import running
from bench.load import Target, in_own_process, run
from bench.report import Progress, Table, number, ratio, span
from bench.servers import REPOSITORY, Lab, end
from zq import outbox
from zq.client.values import Submission
from zq.outbox.postgres import PostgresSource
from zq.outbox.relay import MOST_AT_ONCE
from zq.outbox.writing import document_of, job_of

sys.path.insert(0, str(REPOSITORY / "tests"))

from outbox.postgres import Postgres, postgres

FILL = 5_000
WARM_UP = 20
AIMS = {"relay": "20,000/s", "commit": "p50 10 ms", "sqlite": "p50 10 ms"}


@dataclass(frozen=True)
class Place:
    """The server and the database of a run, and the process of the database's server."""

    target: Target
    database: str
    postgres: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.target.port}"


@dataclass(frozen=True)
class Run:
    """Rows a second, and microseconds of processor time a row: of the client, zq, PostgreSQL."""

    row: str
    rate: float
    cpu_us: float
    zq_us: float
    postgres_us: float


@dataclass(frozen=True)
class Wait:
    """How long jobs waited until their handlers ran."""

    row: str
    p50_ms: float
    p99_ms: float


def nothing(number: int) -> None: ...


def make(url: str) -> tuple[zq.App, zq.AsyncTask[[int], None] | zq.Task[[int], None]]:
    app = zq.App(url)
    return app, app.task(queue="bench", result_ttl=None)(nothing)


def fill(place: Place, rows: int) -> None:
    """Commit rows into a new table."""
    _, task = make(place.url)
    with psycopg.connect(place.database) as connection:
        outbox.create_table(connection)
        for start in range(0, rows, FILL):
            calls = (task.args(n) for n in range(start, min(start + FILL, rows)))
            outbox.enqueue_many(connection, task, calls)
            connection.commit()
    with psycopg.connect(place.database, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE zq_outbox")
        connection.execute("CHECKPOINT")


def submissions(rows: int) -> Iterator[Sequence[Submission]]:
    """The jobs of as many rows, by pages."""
    _, task = make("http://127.0.0.1:1")
    documents = [document_of(task.job(task.args(n).payload)) for n in range(rows)]
    jobs = [job_of(document) for document in documents]
    for start in range(0, rows, MOST_AT_ONCE):
        yield jobs[start : start + MOST_AT_ONCE]


async def bulk(place: Place, rows: int) -> Run:
    pages = list(submissions(rows))
    app, task = make(place.url)
    async with app:
        await task.enqueue(0)

        async def work() -> None:
            async for _ in app.backend.enqueue_each(pages):
                pass

        return await timed("bulk", place, rows, work)


async def rows_alone(place: Place, rows: int) -> Run:
    source = PostgresSource(place.database)
    await source.open()

    async def work() -> None:
        while found := await source.oldest():
            await source.delete([row.id for row in found])

    try:
        return await timed("rows", place, rows, work)
    finally:
        await source.close()


async def relay(place: Place, rows: int) -> Run:
    app, task = make(place.url)
    async with app:
        await task.enqueue(0)
        return await timed("relay", place, rows, outbox.Relay(app, place.database).run_until_empty)


async def timed(row: str, place: Place, rows: int, work: Callable[[], Awaitable[object]]) -> Run:
    pids = place.target.pid, place.postgres
    before = [proc.cpu_seconds(pid) for pid in pids]
    began, cpu = time.perf_counter(), time.process_time()
    await work()
    seconds, spent = time.perf_counter() - began, time.process_time() - cpu
    theirs = [proc.cpu_seconds(pid) - then for pid, then in zip(pids, before, strict=True)]
    return Run(row, rows / seconds, *(each / rows * 1e6 for each in (spent, *theirs)))


async def waits(row: str, place: Place, jobs: int) -> Wait:
    """Jobs one after the other, from their commit or their request to their handler."""
    app, _ = make(place.url)
    ran: asyncio.Queue[float] = asyncio.Queue()

    @app.task(queue="bench", result_ttl=None)
    async def note(number: int) -> None:
        ran.put_nowait(time.perf_counter())

    times = []
    async with app, working(app), connected(row, place) as database:
        for n in range(WARM_UP + jobs):
            if row == "enqueue":
                began = time.perf_counter()
                await note.enqueue(n)
            elif isinstance(database, sqlite3.Connection):
                outbox.enqueue(database, note, n)
                began = time.perf_counter()
                database.commit()
            else:
                await outbox.enqueue(database, note, n)
                began = time.perf_counter()
                await database.commit()
            times.append(await ran.get() - began)
    p50, p99 = percentiles(times[WARM_UP:])
    return Wait(row, p50 * 1e3, p99 * 1e3)


@asynccontextmanager
async def connected(
    row: str, place: Place
) -> AsyncIterator[sqlite3.Connection | psycopg.AsyncConnection]:
    if row == "sqlite":
        with closing(sqlite3.connect(place.database.removeprefix("sqlite://"))) as connection:
            yield connection
    else:
        async with await psycopg.AsyncConnection.connect(place.database) as database:
            yield database


@asynccontextmanager
async def working(app: zq.App) -> AsyncIterator[None]:
    worker = zq.Worker(app)
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        await worker.stop()
        await task


ROWS = {"bulk": bulk, "rows": rows_alone, "relay": relay}
WAITS = ("enqueue", "commit", "sqlite")


def run_row(row: str, place: Place, rows: int) -> Run:
    return run(ROWS[row](place, rows))


def run_waits(row: str, place: Place, jobs: int) -> Wait:
    return run(waits(row, place, jobs))


def start_relay(place: Place) -> subprocess.Popen[bytes]:
    words = ("relay", "--url", place.url, "--database", place.database, "--log-level", "error")
    return subprocess.Popen([sys.executable, "-m", "zq.cli", *words], cwd=REPOSITORY)


def measured(lab: Lab, running_postgres: Postgres, row: str, rows: int, jobs: int) -> Run | Wait:
    with lab.server("zq") as target, TemporaryDirectory(dir=lab.directory) as folder:
        if row == "sqlite":
            database = f"sqlite://{folder}/app.db"
            with closing(sqlite3.connect(f"{folder}/app.db")) as connection:
                outbox.create_table(connection)
        else:
            database = running_postgres.new_database()
        place = Place(target, database, running_postgres.pid)
        if row in ROWS:
            in_own_process(fill, place, 0 if row == "bulk" else rows)
            return in_own_process(run_row, row, place, rows)
        if row != "sqlite":
            in_own_process(fill, place, 0)
        with running(partial(start_relay, place), end):
            return in_own_process(run_waits, row, place, jobs)


def moved(lab: Lab, rounds: int, rows: int, jobs: int, progress: Progress) -> list[Run | Wait]:
    found = []
    with postgres(flushes=True) as database:
        for turn in range(rounds):
            for row in (*ROWS, *WAITS):
                progress.show(f"round {turn + 1}/{rounds} {row}")
                found.append(measured(lab, database, row, rows, jobs))
    progress.clear()
    return found


def moved_table(found: list[Run | Wait]) -> Table:
    runs = [each for each in found if isinstance(each, Run)]
    bulks = [each.rate for each in runs if each.row == "bulk"]
    lines = []
    for row in ROWS:
        mine = [each for each in runs if each.row == row]
        rates = [each.rate for each in mine]
        ratios = [a / b for a, b in zip(rates, bulks, strict=True)]
        cpu = zip(*((each.cpu_us, each.zq_us, each.postgres_us) for each in mine), strict=True)
        cells = [number(statistics.median(rates)), span(rates, 0)]
        cells += [number(statistics.median(each), 1) for each in cpu]
        cells += ["", ""] if row == "bulk" else [ratio(ratios), span(ratios, 2)]
        lines.append([row, *cells, "", "", AIMS.get(row, "")])
    for row in WAITS:
        of_row = [each for each in found if isinstance(each, Wait) and each.row == row]
        p50s = [each.p50_ms for each in of_row]
        cells = [number(statistics.median(p50s), 2), span(p50s, 2)]
        p99 = number(statistics.median(each.p99_ms for each in of_row), 2)
        lines.append(
            [row, *[""] * 7, " ".join((cells[0], f"({cells[1]})")), p99, AIMS.get(row, "")]
        )
    return Table(
        [
            *("row", "rows/s", "low-high", "client µs/row", "zq µs/row", "PostgreSQL µs/row"),
            *("of bulk", "low-high", "p50 ms", "p99 ms", "aim"),
        ],
        lines,
    )
