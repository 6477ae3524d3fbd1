"""Producers: they enqueue single and bulk requests of every kind."""

import asyncio
import itertools
from collections import deque
from random import Random

from conformance.client import JSON, JSON_HTTP2, MSGPACK, MSGPACK_HTTP2, Client
from conformance.streams import Job

from .actors import DYING, LIMITED, MOURNING, QUEUES, Actor, Notebook, outcome
from .history import NEVER, Cancel, Enqueue, Outcome, now

PRODUCERS = (JSON, MSGPACK, JSON_HTTP2, MSGPACK_HTTP2)
MOST_KEYS = {"queued": 20, "active": 20, "exists": 500}
"""Unique keys by the span that they cover."""
MOST_GROUPS = 4
"""Groups of a queue: few enough that jobs wait for one another."""
MOST_NAMES = 20
"""Names for `dedupe`."""
MOST_REMEMBERED = 50
"""Jobs that a producer may yet cancel."""
TARGETS = (*((queue,) for queue in QUEUES if queue != LIMITED), (LIMITED,), (LIMITED, "a"))
"""Where the jobs of one request go, so that not all requests meet the limit of one queue."""
USUAL_PRIORITY = 1_000
MOST_UNFINISHED = 800
"""Above this producers pause, so that listings stay short."""


class Producer(Actor):
    """Stores jobs of every kind, and cancels some."""

    def __init__(self, client: Client, notebook: Notebook, random: Random) -> None:
        super().__init__(client, notebook, random)
        self._recent: deque[tuple[str, str]] = deque(maxlen=MOST_REMEMBERED)
        """Ids and names."""

    async def run(self) -> None:
        while not self.alone:
            if self._recent and self.random.random() < 0.08:
                await self._cancel(*self.random.choice(self._recent))
            if self.notebook.unfinished > MOST_UNFINISHED:
                await asyncio.sleep(0.005)
            elif self.random.random() < 0.6:
                await self.enqueue()
            else:
                await self.enqueue_bulk(self.random.randint(2, 40))

    async def enqueue(self) -> None:
        job = self._new_job(self.random.choice(QUEUES))
        start = now()
        reply = await self.post("/jobs", job)
        done = outcome(reply, done=(200, 201), refused=(429,))
        self._note(start, done, [job], [reply.doc] if reply and done is Outcome.OK else None)

    async def enqueue_bulk(self, count: int) -> None:
        queues = self.random.choice((QUEUES[:-2], *TARGETS))
        jobs = [self._new_job(self.random.choice(queues)) for _ in range(count)]
        start = now()
        reply = await self.post("/jobs/bulk", {"jobs": jobs})
        done = outcome(reply, done=(200, 201), refused=(429,))
        stored = reply.doc["jobs"] if reply and done is Outcome.OK else None
        self._note(start, done, jobs, stored)

    def _note(self, start: float, done: Outcome, jobs: list[Job], stored: list[Job] | None) -> None:
        """Write down what has become of the jobs of one request. `stored` has its answers."""
        end = now()
        for job, answer in itertools.zip_longest(jobs, stored or ()):
            result, id, owner = done, "", ""
            if answer is not None and answer["duplicate"]:
                result, owner = Outcome.REFUSED, answer["id"]
            elif answer is not None:
                result, id = Outcome.OK, answer["id"]
                self._recent.append((id, job["payload"]["name"]))
            name = job.get("dedupe", {"id": "", "window_ms": 0})
            self.notebook.add(
                Enqueue(
                    start=start,
                    end=end,
                    job=job["payload"]["name"],
                    outcome=result,
                    id=id,
                    owner=owner,
                    queue=job["queue"],
                    priority=job["priority"],
                    unique_key=job.get("unique_key", ""),
                    delayed="ready_at" in job,
                    group=job.get("group", ""),
                    dedupe=name["id"],
                    window_ms=name["window_ms"],
                    ttl_ms=job.get("ttl_ms", 0),
                    expires_at=(answer or {}).get("expires_at", NEVER),
                    dead_letter=MOURNING if job["queue"] == DYING else "",
                )
            )

    def _new_job(self, queue: str) -> Job:
        random = self.random
        size = random.choice((0, 0, 50, 50, 400, 600, 3_000, 9_000))
        payload = {"name": self.notebook.new_name(), "pad": "x" * size, "size": size}
        job: Job = {"queue": queue, "type": "crash", "payload": payload}
        job["priority"] = random.randint(0, 65_535) if random.random() < 0.3 else USUAL_PRIORITY
        if random.random() < 0.15:
            job["ready_at"] = int(now()) + random.randint(0, 400)
        if random.random() < 0.2:
            job["group"] = f"group-{random.randint(1, MOST_GROUPS)}"
        if random.random() < 0.05 and queue != DYING:
            job["ttl_ms"] = random.choice((30, 300, 5_000))
        if random.random() < 0.1:
            window_ms = random.choice((200, 1_000, 5_000))
            job["dedupe"] = {"id": f"name-{random.randint(1, MOST_NAMES)}", "window_ms": window_ms}
        elif random.random() < 0.15:
            scope = random.choice(list(MOST_KEYS))
            key = f"{scope}-{random.randint(1, MOST_KEYS[scope])}"
            job |= {"unique_key": key, "unique_while": scope}
        if random.random() < 0.1:
            job["retention"] = {"completed_ms": 3_600_000}
        return job

    async def _cancel(self, id: str, name: str) -> None:
        force = self.random.random() < 0.5
        start = now()
        reply = await self.post(f"/jobs/{id}/cancel", {"force": True} if force else ...)
        result = outcome(reply, done=(200,), refused=(404, 409))
        self.notebook.add(Cancel(start=start, end=now(), job=name, outcome=result, force=force))
