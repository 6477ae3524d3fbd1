"""The bare baseline: aiohttp handlers over a minimal tick, and nothing else.

It is the yardstick for the real server, so it does only what no server of this design can omit: it
reads the request, stores it in one transaction a tick, has it on the disk, answers, and hands out
claimed jobs to streams. It validates nothing and counts nothing. A job is waiting or taken, and is
never returned.

With `--tick loop` a transaction runs on the event loop and the kernel is asked for the flush, as in
the real server. With `--tick thread` a thread does both, at the cost of handing over to it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import socket
import sqlite3
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import cast

import msgspec
import orjson
from aiohttp import web

from bench.baseline_disk import KINDS, Disk, Kind, open_disk
from bench.loops import LOOPS, best_loop, loop_factory

# SQLite copies the WAL back by itself at 1,000 pages. That is as fast as doing it by hand.
SCHEMA = """
PRAGMA journal_mode = WAL; PRAGMA secure_delete = OFF; PRAGMA wal_autocheckpoint = 1000;
PRAGMA cache_size = -16384;
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY, queue TEXT NOT NULL, type TEXT NOT NULL, priority INTEGER NOT NULL,
    taken INTEGER NOT NULL DEFAULT 0, ready_at INTEGER NOT NULL, payload TEXT NOT NULL) STRICT;
CREATE INDEX waiting ON jobs (priority, id) WHERE taken = 0;
"""
INSERT = """INSERT INTO jobs (id, queue, type, priority, ready_at, payload)
    SELECT value->>0, value->>1, value->>2, value->>3, value->>4, value->>5 FROM json_each(?)"""
DELETE = "DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?))"
HEAD = """SELECT json_group_array(id)
    FROM (SELECT id FROM jobs WHERE taken = 0 ORDER BY priority, id LIMIT ?)"""
TAKE = "UPDATE jobs SET taken = 1 WHERE id IN (SELECT value FROM json_each(?))"
READ = """SELECT json_group_array(json_array(id, queue, type, priority, ready_at, payload))
    FROM jobs WHERE id IN (SELECT value FROM json_each(?))"""
PRIORITY = 32768
MAX_BODY = 64 * 2**20

Row = tuple[int, str, str, int, int, str]


class Job(msgspec.Struct):
    queue: str
    type: str
    payload: msgspec.Raw


class Bulk(msgspec.Struct):
    jobs: list[Job]


class Ids(msgspec.Struct):
    ids: list[str]


class Stream:
    def __init__(self, prefetch: int) -> None:
        self.credit = prefetch
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()


def transaction(
    connection: sqlite3.Connection, rows: list[Row], done: list[int], credit: int
) -> str:
    """Store, delete and take jobs. Return the rows of the taken jobs as JSON."""
    run, jobs = connection.execute, "[]"
    run("BEGIN IMMEDIATE")
    if done:
        run(DELETE, (orjson.dumps(done).decode(),))
    if rows:
        run(INSERT, (orjson.dumps(rows).decode(),))
    if credit:
        head = run(HEAD, (credit,)).fetchone()
        run(TAKE, head)
        jobs = run(READ, head).fetchone()[0]
    run("COMMIT")
    return jobs


class Tick:
    """Puts everything that waits into one transaction. The next one gathers during its flush."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.rows: list[Row] = []
        self.done: list[int] = []
        self.waiters: list[asyncio.Future[None]] = []
        self.streams: set[Stream] = set()
        self.holders: dict[int, Stream] = {}
        self.wake = asyncio.Event()

    def submit(self, rows: Sequence[Row], done: Sequence[int]) -> asyncio.Future[None]:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rows += rows
        self.done += done
        self.waiters.append(waiter)
        self.wake.set()
        return waiter

    async def run(self) -> None:
        while True:
            await self.wake.wait()
            self.wake.clear()
            rows, done, waiters = self.rows, self.done, self.waiters
            self.rows, self.done, self.waiters = [], [], []
            for key in done:
                self.holders.pop(key).credit += 1
            credit = sum(stream.credit for stream in self.streams)
            run = partial(transaction, rows=rows, done=done, credit=credit)
            jobs = await self.disk.commit(run)
            for waiter in waiters:
                if not waiter.cancelled():
                    waiter.set_result(None)
            self.deal(orjson.loads(jobs))

    def deal(self, jobs: list[Row]) -> None:
        rest, now = iter(jobs), milliseconds()
        for stream in self.streams:
            if share := list(itertools.islice(rest, stream.credit)):
                stream.credit -= len(share)
                self.holders.update((job[0], stream) for job in share)
                stream.frames.put_nowait("".join([frame(job, now) for job in share]).encode())


class Api:
    def __init__(self, tick: Tick) -> None:
        self.tick = tick
        self.ids = itertools.count(milliseconds() << 20)
        self.job = msgspec.json.Decoder(Job)
        self.bulk = msgspec.json.Decoder(Bulk)
        self.acked = msgspec.json.Decoder(Ids)

    def row(self, job: Job, now: int) -> Row:
        payload = str(cast(bytes, job.payload), "utf-8")
        return (next(self.ids), job.queue, job.type, PRIORITY, now, payload)

    async def enqueue(self, request: web.Request) -> web.Response:
        row = self.row(self.job.decode(await request.read()), milliseconds())
        await self.tick.submit([row], [])
        return created(stored(row))

    async def enqueue_bulk(self, request: web.Request) -> web.Response:
        now, body = milliseconds(), await request.read()
        rows = [self.row(job, now) for job in self.bulk.decode(body).jobs]
        await self.tick.submit(rows, [])
        return created('{"jobs":[' + ",".join([stored(row) for row in rows]) + "]}")

    async def succeed(self, request: web.Request) -> web.Response:
        await self.tick.submit([], [int(request.match_info["id"])])
        return web.Response(status=204)

    async def succeed_bulk(self, request: web.Request) -> web.Response:
        ids = self.acked.decode(await request.read()).ids
        await self.tick.submit([], [int(key) for key in ids])
        return web.Response(status=204)

    async def take(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        stream = Stream(int(request.query.get("prefetch", "1")))
        self.tick.streams.add(stream)
        self.tick.wake.set()
        try:
            with contextlib.suppress(ConnectionError):
                while True:
                    await response.write(await stream.frames.get())
        finally:
            self.tick.streams.discard(stream)
        return response

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/jobs", self.enqueue),
            web.post("/jobs/bulk", self.enqueue_bulk),
            web.post("/jobs/success", self.succeed_bulk),
            web.post("/jobs/{id}/success", self.succeed),
            web.get("/jobs/take", self.take),
        ]


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def stored(row: Row) -> str:
    key, queue, kind, priority, ready_at, _ = row
    return (
        f'{{"id":"{key:026d}","type":"{kind}","queue":"{queue}","priority":{priority},'
        f'"status":"ready","ready_at":{ready_at},"attempts":0,"duplicate":false,"folded":false}}'
    )


def frame(row: Row, now: int) -> str:
    key, queue, kind, priority, ready_at, payload = row
    return (
        f'{{"id":"{key:026d}","type":"{kind}","queue":"{queue}","priority":{priority},'
        f'"status":"in_flight","payload":{payload},"ready_at":{ready_at},"attempts":0,'
        f'"dequeued_at":{now}}}\n'
    )


def created(text: str) -> web.Response:
    return web.Response(body=text.encode(), status=201, content_type="application/json")


def announce(listener: socket.socket) -> None:
    """Print the line from which scripts read the address of a server."""
    address = "{}:{}".format(*listener.getsockname())
    fields = {"message": "listening", "api": "primary", "addr": address, "scheme": "http"}
    print(json.dumps({"fields": fields}, separators=(",", ":")), flush=True)


async def serve(port: int, root: Path, kind: Kind) -> None:
    async with open_disk(root / "jobs.db", SCHEMA, kind) as disk:
        tick = Tick(disk)
        app = web.Application(client_max_size=MAX_BODY)
        app.add_routes(Api(tick).routes())
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        listener = socket.create_server(("127.0.0.1", port))
        await web.SockSite(runner, listener).start()
        announce(listener)
        await tick.run()


def main() -> None:
    parser = argparse.ArgumentParser(description="the bare baseline of the benchmark")
    parser.add_argument("--port", type=int, default=0, help="0 means any free one")
    parser.add_argument("--root-dir", type=Path, required=True, help="an existing directory")
    parser.add_argument("--tick", choices=KINDS, default=KINDS[0], help="where it runs")
    parser.add_argument("--loop", choices=LOOPS, default=best_loop())
    args = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory(args.loop)) as runner:
        runner.run(serve(args.port, args.root_dir, args.tick))


if __name__ == "__main__":
    main()
