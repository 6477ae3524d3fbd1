"""All features at once under SIGKILL: every route, jobs of every kind, and the laws of the file.

The load knows nothing of what it does: it asks for whatever can be asked for, in a few queues. So
the file is judged by itself, but for one queue, `KEPT`, whose jobs nothing but workers may end.
"""

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from conformance.client import Client, Reply, new_job
from conformance.keyed import request_to, walk
from conformance.streams import PATIENCE_S
from process.server import ServerProcess

from zq.instance import examine

from .folds import until_death

FLAGS = (
    # Longer than any run: a job that was purged would count as lost.
    *("--default-completed-job-retention", "100d", "--default-dead-job-retention", "100d"),
    *("--history", "1h"),
)
QUEUES = ("a", "b")
KEPT = "kept"
KEYS = ("x", "y", "z")

STREAMS = {("GET", "/jobs/take"), ("GET", "/events")}
OF_EVERYTHING = {("POST", "/reset")}
FILTERED = ("/jobs", "/jobs/cancel", "/jobs/requeue", "/jobs/redrive", "/jobs/budgets")
"""Changes by a filter, which need one."""

DOORS: tuple[tuple[str, str, Any], ...] = (
    ("PUT", "/v0/topics/t", {"retention": {"max_records": 50}}),
    ("POST", "/v0/topics/t", {"records": [{"data": {"n": 1}}, {"data": 2, "tag": "g"}]}),
    ("POST", "/v0/topics/a", {"records": [{"data": {"n": 1}}]}),
    ("GET", "/v0/topics/t", None),
    ("POST", "/v0/topics/a/claim", {"node": "w", "max": 3}),
    ("PUT", "/v0/routers/r", {"source": "t", "dest": "u"}),
    ("DELETE", "/v0/routers/r", None),
    ("POST", "/api/messages", {"topic": "b", "payload": "1"}),
    ("POST", "/api/messages/dequeue", {"topic": "b", "count": 3}),
)

BUDGET = {"allocation": 3, "strategy": {"type": "while_in_flight"}}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"concurrency": 5},
    {"rate": 200},
    {"max_depth": 300},
    {"fair": {"key": "payload.n"}},
    {"retry_limit": 1},
    {"paused": False},
)

LAWS = {
    "a body is missing": """
        SELECT id FROM jobs WHERE payload IS NULL AND id NOT IN (SELECT job_id FROM payloads)
            OR result_size > 512 AND id NOT IN (SELECT job_id FROM results)""",
    "a body has no job": """
        SELECT job_id FROM payloads UNION SELECT job_id FROM results
        UNION SELECT job_id FROM errors EXCEPT SELECT id FROM jobs""",
    "two jobs own a key": """
        SELECT key_lock FROM jobs WHERE owns_key GROUP BY key_lock HAVING count(*) > 1""",
    "a group has two jobs in flight": """
        SELECT queue, group_id FROM jobs WHERE status = 2 AND group_id IS NOT NULL
        GROUP BY 1, 2 HAVING count(*) > 1""",
    "a group waits for nobody": """
        SELECT queue, group_id FROM jobs WHERE status <= 2 AND group_id IS NOT NULL
        GROUP BY 1, 2 HAVING min(held & 1) = 1""",
    "a budget counts other jobs than there are": """
        SELECT b.key FROM budgets AS b LEFT JOIN (
            SELECT d.value ->> '$[0]' AS key, count(*) AS unfinished,
                sum(status = 1) AS waiting,
                sum(iif(status = 2, d.value ->> '$[1]', 0)) AS in_use
            FROM jobs, json_each(options, '$.budgets') AS d WHERE status <= 2 GROUP BY 1) AS j
            ON j.key = b.key
        WHERE b.unfinished <> ifnull(j.unfinished, 0) OR b.waiting <> ifnull(j.waiting, 0)
            OR b.duration_ms IS NULL AND b.in_use <> ifnull(j.in_use, 0)""",
    "a share counts other jobs than there are": """
        SELECT ifnull(s.queue, j.queue), ifnull(s.fair_key, j.fair_key) FROM (
            SELECT queue, options ->> '$.fair_key' AS fair_key, count(*) AS unfinished,
                sum(status = 1) AS waiting, sum(status = 2) AS in_flight
            FROM jobs WHERE status <= 2 AND fair_key IS NOT NULL GROUP BY 1, 2) AS j
        FULL JOIN shares AS s ON s.queue = j.queue AND s.fair_key = j.fair_key
        WHERE ifnull(s.unfinished, 0) <> ifnull(j.unfinished, 0)
            OR ifnull(s.waiting, 0) <> ifnull(j.waiting, 0)
            OR ifnull(s.in_flight, 0) <> ifnull(j.in_flight, 0)""",
    "a job waits in no line, or in one for nothing": """
        SELECT id FROM jobs WHERE (line IS NOT NULL) <> (status <= 1 AND held & 2 <> 0)
            OR line IS NOT NULL AND line NOT IN (SELECT id FROM lines)""",
    "a line has another head than its first job": """
        SELECT id FROM lines WHERE head IS NOT (
            SELECT min(jobs.id) FROM jobs WHERE line = lines.id AND status = 1 AND held = 2)""",
    "a topic counts other records than there are": """
        SELECT t.name FROM topics AS t LEFT JOIN (
            SELECT key >> 41 AS topic, count(*) AS n FROM topic_records GROUP BY 1) AS r
            ON r.topic = t.id
        WHERE t.count <> ifnull(r.n, 0)""",
    "a log has other bounds than its batches": """
        SELECT l.name FROM logs AS l JOIN (
            SELECT log, min(last_seq - count) + 1 AS first, max(last_seq) AS last,
                sum(length(body) + length(shared)) AS bytes
            FROM log_batches GROUP BY log) AS b ON b.log = l.id
        WHERE (l.min_seq, l.max_seq, l.bytes) <> (b.first, b.last, b.bytes)""",
    "an open batch is no waiting job": """
        SELECT job_id FROM open_batches EXCEPT SELECT id FROM jobs WHERE status <= 1""",
}
"""What no row of a dead server's file may be, each with the query that finds such rows."""


@dataclass
class Ledger:
    """What clients know of the jobs in `KEPT`, by the numbers in their payloads."""

    numbers: "count[int]" = field(default_factory=count)
    stored: set[int] = field(default_factory=set)
    tried: set[int] = field(default_factory=set)
    """Jobs of which somebody has said that they are done, whether there was an answer or not."""
    done: set[int] = field(default_factory=set)
    statuses: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """How often each route was answered, and how."""

    def note(self, method: str, path: str, reply: Reply) -> Reply:
        """Note an answer. No request is the server's fault."""
        self.statuses[method, path, reply.status] += 1
        assert reply.status < 500 or reply.status == 503, (method, path, reply.doc)
        return reply


def breaches(root: Path, ledger: Ledger) -> Iterator[str]:
    """What is wrong in the file of a dead server: damage, a broken law, a job that is lost."""
    for finding in examine(root).damage:
        # A kill in the middle of a write leaves it unfinished. What was acknowledged comes below.
        if not finding.startswith("the end of its log"):
            yield finding
    copy = root.with_name("copy")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*-shm"))
    with closing(sqlite3.connect(copy / "zq.db")) as file:
        for law, query in LAWS.items():
            if rows := file.execute(query).fetchall():
                yield f"{law}: {rows[:5]}"
        kept = {
            json.loads(payload): status
            for payload, status in file.execute(
                "SELECT payload, status FROM jobs WHERE queue = ?", [KEPT]
            )
        }
    shutil.rmtree(copy)
    if lost := ledger.stored - kept.keys():
        yield f"{len(lost)} jobs are lost: {sorted(lost)[:5]}"
    if undone := {n for n in ledger.done if kept.get(n) != 3}:
        yield f"{len(undone)} jobs that were done came back: {sorted(undone)[:5]}"
    if unasked := {n for n, status in kept.items() if status > 2} - ledger.tried:
        yield f"{len(unasked)} jobs have ended by themselves: {sorted(unasked)[:5]}"


class Wanderer:
    """A client that asks for whatever can be asked for."""

    def __init__(self, client: Client, ledger: Ledger, random: Random) -> None:
        self._client, self._ledger, self._random = client, ledger, random
        self._ids = ["01JD0000000000000000000000"]
        self.asked = ""

    async def run(self) -> None:
        """Go on until the server dies."""
        steps = (self._route, self._route, self._store, self._store, self._door, self._settings)
        while True:
            await self._random.choice(steps)()

    async def work(self) -> None:
        """Claim jobs, and let each end as it may."""
        while True:
            wanted = {"holder": "h", "max": 5, "lease_ms": self._random.choice((50, 60_000))}
            queue = self._random.choice(QUEUES)
            reply = await self._ask("POST", f"/queues/{queue}/claim", wanted)
            for job in reply.doc["jobs"] if reply.status == 200 else ():
                fate = self._random.choice(("success", "success", "failure", "release", None))
                body = {"message": "no"} if fate == "failure" else {}
                if fate is not None:
                    await self._ask("POST", f"/jobs/{job['id']}/{fate}", body)

    async def keep(self) -> None:
        """Store jobs that must not be lost, and end each of them once."""
        while True:
            number = next(self._ledger.numbers)
            job = new_job(queue=KEPT, payload=number)
            if (await self._ask("POST", "/jobs", job)).status == 201:
                self._ledger.stored.add(number)
            wanted = {"holder": "k", "max": 2, "lease_ms": 60_000}
            for each in (await self._ask("POST", f"/queues/{KEPT}/claim", wanted)).doc["jobs"]:
                self._ledger.tried.add(each["payload"])
                if (await self._ask("POST", f"/jobs/{each['id']}/success", {})).status == 204:
                    self._ledger.done.add(each["payload"])

    async def _ask(self, method: str, path: str, doc: Any) -> Reply:
        self.asked = f"{method} {path} {doc}"
        return self._ledger.note(method, path, await self._client.call(method, path, doc))

    async def _route(self) -> None:
        method, path = self._random.choice(ROUTES)
        queue = self._random.choice(QUEUES)
        id = self._random.choice(self._ids)
        request = request_to(self._client.wire, method, path, queue=queue, id=id)
        method, target, body, headers = request
        target = target.replace("{key}", self._random.choice(KEYS)).replace("{name}", "p")
        if path.startswith(FILTERED) and "{id}" not in path and "by-key" not in path:
            target += f"?queue={queue}"
        self.asked = f"{method} {target} {body!r}"
        reply = await self._client.send(method, target, body, headers)
        self._ledger.note(method, path, reply)

    async def _store(self) -> None:
        jobs = [self._job() for _ in range(self._random.choice((1, 1, 3)))]
        if len(jobs) > 1:
            reply = await self._ask("POST", "/jobs/bulk", {"jobs": jobs})
            found = reply.doc["jobs"] if reply.status == 201 else []
        else:
            reply = await self._ask("POST", "/jobs", jobs[0])
            found = [reply.doc] if reply.status == 201 else []
        self._ids = [*self._ids[-40:], *[job["id"] for job in found]]

    def _job(self) -> dict[str, Any]:
        random = self._random
        fields: dict[str, Any] = {
            "fair_key": random.choice(KEYS),
            "fair_weight": random.choice((1, 2.5)),
            "group": random.choice(KEYS),
            "unique_key": random.choice(("u", "v", "owned")),
            "budgets": [{"key": random.choice(KEYS), "cost": 1, "create_with": BUDGET}],
            "priority": random.randrange(3),
            "ttl_ms": random.choice((20, 60_000)),
            "delay_ms": random.choice((10, 60_000)),
            "dead_letter": "b",
            "retry_limit": random.randrange(3),
            "meta": {"m": 1},
            "payload": random.choice(({"n": random.randrange(3)}, "x" * 600, 1)),
            "batch": {"key": random.choice(KEYS), "when": "true", "fold": "$existing"},
        }
        chosen = random.sample(sorted(fields), random.randrange(4))
        return new_job(queue=random.choice(QUEUES), **{name: fields[name] for name in chosen})

    async def _door(self) -> None:
        await self._ask(*self._random.choice(DOORS))

    async def _settings(self) -> None:
        queue = self._random.choice(QUEUES)
        await self._ask("PATCH", f"/queues/{queue}/settings", self._random.choice(SETTINGS))


ROUTES = [
    (method, path)
    for method, path in walk()
    if method not in ("HEAD", "*") and (method, path) not in STREAMS | OF_EVERYTHING
]


async def live_and_die(root: Path, ledger: Ledger, random: Random, answers: int) -> None:
    """One life of a server, which is killed after about so many answers."""
    server = await (await ServerProcess.spawn(root, *FLAGS)).listening()
    async with server.client() as client:
        await client.call("DELETE", f"/queues/{KEPT}/settings", None)
        wanderers = [Wanderer(client, ledger, Random(random.random())) for _ in range(6)]
        roads = [each.run() for each in wanderers[:4]]
        roads += [wanderers[4].work(), wanderers[5].keep()]
        tasks = [asyncio.ensure_future(until_death(asyncio.ensure_future(road))) for road in roads]
        enough = ledger.statuses.total() + random.randrange(answers // 2, answers)
        async with asyncio.timeout(3 * PATIENCE_S):
            while ledger.statuses.total() < enough:
                await asyncio.sleep(0.002)
                for task in tasks:
                    if task.done():
                        task.result()
                        raise AssertionError(f"a client has ended: {[w.asked for w in wanderers]}")
        await server.kill()
        await asyncio.gather(*tasks)
