"""Budgets under SIGKILL: jobs that draw tokens, and what clients and the file tell of these."""

import asyncio
import json
import shutil
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from conformance.client import Client, new_job
from conformance.streams import PATIENCE_S, TakeStream
from process.server import ServerProcess

from .folds import until_death

ALLOCATIONS = {"two": 2, "five": 5}
"""Budgets whose tokens come back when a job is no longer in flight."""

RATE, EVERY_MS, BURST = 30, 100, 40
"""The budget `rate` fills up with so many tokens in so many milliseconds, up to the burst."""

DRAWS: tuple[Mapping[str, int], ...] = (
    {"two": 1},
    {"five": 1},
    {"five": 3},
    {"two": 2, "five": 1},
    {"rate": 1},
    {"rate": 2, "five": 1},
    {},
)
QUEUES = ("a", "b")
MOST_WAITING = 400
KEPT = ("--default-completed-job-retention", "1h", "--default-dead-job-retention", "1h")

WAITING, READY, IN_FLIGHT = (0, 1), 1, 2
"""Values of `status` in the file: scheduled and ready; ready; in flight."""


class Holding(NamedTuple):
    """From when to when a client surely held a job, in seconds of this process."""

    start: float
    end: float
    draws: Mapping[str, int]


class _Held(NamedTuple):
    """A job that a client holds now. `until` is a deadline."""

    holder: object
    start: float
    until: float
    draws: Mapping[str, int]


class Notes:
    """What clients have held, and what they hold."""

    def __init__(self) -> None:
        self.holdings: list[Holding] = []
        self.deliveries = 0
        self._held: dict[str, _Held] = {}

    def take(self, holder: object, job: Mapping[str, Any], until: float = float("inf")) -> None:
        """Note a delivery, which is its holder's until it is settled or this time has come."""
        draws = {draw["key"]: draw["cost"] for draw in job.get("budgets", ())}
        self.settle(job["id"])
        self._held[job["id"]] = _Held(holder, time.monotonic(), until, draws)
        self.deliveries += 1

    def settle(self, id: str) -> None:
        """Note that a job may be over from now on."""
        if id in self._held:
            held = self._held.pop(id)
            end = min(held.until, time.monotonic())
            self.holdings.append(Holding(held.start, end, held.draws))

    def hang_up(self, holder: object) -> None:
        """Note that what this holder has may be over from now on."""
        for id in [id for id, held in self._held.items() if held.holder is holder]:
            self.settle(id)

    def end_all(self) -> None:
        """Note that the server may be gone from now on."""
        for id in list(self._held):
            self.settle(id)

    def breaches(self) -> Iterator[str]:
        """Moments at which clients held more than a budget has."""
        for key, allocation in ALLOCATIONS.items():
            changes = []
            for holding in self.holdings:
                if (cost := holding.draws.get(key, 0)) and holding.end > holding.start:
                    changes += [(holding.start, cost), (holding.end, -cost)]
            drawn = 0
            # What comes back at a moment comes before what goes out.
            for _, change in sorted(changes):
                drawn += change
                if drawn > allocation:
                    yield f"{drawn} tokens of {key} were out, of {allocation}"
                    break


class Look(NamedTuple):
    """What the file of a dead server says."""

    in_use: Mapping[str, int]
    drawn: Mapping[str, int]
    """By budget, what the jobs in flight cost."""
    kept: Mapping[str, tuple[int, int]]
    """By budget, how many unfinished jobs draw, and how many of them are ready."""
    jobs: Mapping[str, tuple[int, int]]
    """The same, counted anew."""
    in_line: frozenset[int]
    ready: frozenset[int]
    """Ready jobs that draw, but for those behind the heads of their groups."""
    rated: int
    """Tokens of `rate` that deliveries have taken."""


def look(root: Path) -> Look:
    """Read a copy, so that the log stays as it is for the next life."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*-shm"))
    with closing(sqlite3.connect(copy / "zq.db")) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = _read(file)
    shutil.rmtree(copy)
    return found


_IN_LINE = (
    "SELECT jobs.id FROM jobs JOIN lines ON line = lines.id WHERE status = 1 AND held = 2"
    " AND head <= jobs.id"
)


def _read(file: sqlite3.Connection) -> Look:
    drawn: Counter[str] = Counter()
    jobs: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    ready, rated = set[int](), 0
    rows = file.execute("SELECT id, status, deliveries, held & 1, options ->> 'budgets' FROM jobs")
    for id, status, deliveries, is_behind, draws in rows:
        if draws is None:
            continue
        costs = {draw["key"]: draw["cost"] for draw in map(_draw, json.loads(draws))}
        rated += costs.get("rate", 0) * deliveries
        if status == IN_FLIGHT:
            drawn.update({key: cost for key, cost in costs.items() if key in ALLOCATIONS})
        if status in (*WAITING, IN_FLIGHT):
            for key in costs:
                jobs[key][0] += 1
        if status == READY:
            for key in costs:
                jobs[key][1] += 1
            if not is_behind:
                ready.add(id)
    kept = {
        key: (unfinished, waiting)
        for key, unfinished, waiting in file.execute(
            "SELECT key, unfinished, waiting FROM budgets WHERE unfinished > 0"
        )
    }
    return Look(
        dict(file.execute("SELECT key, in_use FROM budgets WHERE duration_ms IS NULL")),
        drawn,
        kept,
        {name: (unfinished, waiting) for name, (unfinished, waiting) in jobs.items()},
        frozenset(id for (id,) in file.execute(_IN_LINE)),
        frozenset(ready),
        rated,
    )


def _draw(stored: Any) -> dict[str, Any]:
    return stored if isinstance(stored, dict) else dict(zip(("key", "cost"), stored, strict=True))


def breaches(seen: Look, elapsed_s: float) -> Iterator[str]:
    """What the file of a dead server may not say, so long after the budgets were made."""
    for key, allocation in ALLOCATIONS.items():
        if seen.in_use[key] != seen.drawn.get(key, 0):
            yield f"{key}: {seen.in_use[key]} in use, but jobs hold {seen.drawn.get(key, 0)}"
        if seen.in_use[key] > allocation:
            yield f"{key}: {seen.in_use[key]} in use of {allocation}"
    if seen.kept != seen.jobs:
        yield f"the counts are {seen.kept}, but the jobs are {seen.jobs}"
    if seen.in_line != seen.ready:
        yield f"{len(seen.in_line ^ seen.ready)} jobs wait in no line, or are in one for nothing"
    most = BURST + elapsed_s * 1000 / EVERY_MS * RATE
    if seen.rated > most:
        yield f"{seen.rated} tokens of rate were drawn, but there were {most:.0f}"


async def create(client: Client) -> None:
    """Make the budgets."""
    for key, allocation in ALLOCATIONS.items():
        policy = {"allocation": allocation, "strategy": {"type": "while_in_flight"}}
        assert (await client.call("PUT", f"/budgets/{key}", policy)).status in (200, 201)
    strategy = {"type": "time_based", "duration_ms": EVERY_MS, "burst": BURST}
    policy = {"allocation": RATE, "strategy": strategy}
    assert (await client.call("PUT", "/budgets/rate", policy)).status in (200, 201)


async def _produce(client: Client, random: Random) -> None:
    while True:
        if await client.count(status="ready") < MOST_WAITING:
            await client.post("/jobs/bulk", {"jobs": [_job(random) for _ in range(30)]})
        await asyncio.sleep(random.uniform(0, 0.01))


def _job(random: Random) -> dict[str, object]:
    draws = [{"key": key, "cost": cost} for key, cost in random.choice(DRAWS).items()]
    return new_job(
        queue=random.choice(QUEUES),
        priority=random.randrange(3),
        budgets=draws,
        backoff={"exponent": 0, "base_ms": 0, "jitter_ms": 0},
        **({"group": random.choice("xyz")} if random.random() < 0.1 else {}),
    )


async def _work(client: Client, notes: Notes, random: Random) -> None:
    """Take jobs; most succeed, some fail, and one is kept until the worker hangs up."""
    while True:
        stream = await client.take(prefetch=random.choice((1, 4, 30)))
        while await _settle_one(client, stream, notes, random):
            pass
        notes.hang_up(stream)
        await stream.close()


async def _settle_one(client: Client, stream: TakeStream, notes: Notes, random: Random) -> bool:
    """Whether the worker goes on. Else it keeps the job, and what it has not read, to its end."""
    job = await stream.job()
    notes.take(stream, job)
    await asyncio.sleep(random.choice((0, 0, random.uniform(0, 0.02))))
    fate = random.random()
    if fate < 0.05:
        return False
    notes.settle(job["id"])
    if fate < 0.8:
        await client.send("POST", f"/jobs/{job['id']}/success")
    elif fate < 0.9:
        await client.call("POST", f"/jobs/{job['id']}/failure", {"message": "no"})
    else:
        await client.call("POST", f"/jobs/{job['id']}/cancel", {"force": True})
    return True


async def _claim(client: Client, notes: Notes, random: Random) -> None:
    """Claim with leases that run out, for nothing is ever settled."""
    while True:
        lease_ms = random.choice((50, 300))
        body = {"holder": "claimer", "max": random.randrange(1, 6), "lease_ms": lease_ms}
        asked = time.monotonic()
        reply = await client.post(f"/queues/{random.choice(QUEUES)}/claim", body)
        for job in reply.doc["jobs"] if reply.status == 200 else ():
            notes.take(reply, job, until=asked + lease_ms / 1000)
        await asyncio.sleep(random.uniform(0, 0.1))


async def live_and_die(root: Path, notes: Notes, random: Random) -> None:
    """One life of a server, which ends by a kill in the middle of deliveries."""
    server = await (await ServerProcess.spawn(root, *KEPT)).listening()
    async with server.client() as client:
        await create(client)
        actors = [_produce(client, random), *(_work(client, notes, random) for _ in range(3))]
        actors.append(_claim(client, notes, random))
        tasks = [asyncio.ensure_future(until_death(asyncio.ensure_future(a))) for a in actors]
        enough = notes.deliveries + random.randrange(20, 200)
        async with asyncio.timeout(PATIENCE_S):
            while notes.deliveries < enough:
                await asyncio.sleep(0.002)
                assert not any(task.done() for task in tasks), [t for t in tasks if t.done()]
        notes.end_all()
        await server.kill()
        await asyncio.gather(*tasks)
        notes.end_all()


async def work_off(root: Path) -> None:
    """Let everything that waits be paid and done; then end by a kill."""
    server = await (await ServerProcess.spawn(root, *KEPT)).listening()
    async with server.client() as client, asyncio.timeout(3 * PATIENCE_S):
        stream = await client.take(prefetch=500)
        while await client.count(status="scheduled,ready,in_flight"):
            while await stream.has_frame():
                if (job := await stream.frame()) is not None:
                    await client.succeed(job["id"])
    await server.kill()
