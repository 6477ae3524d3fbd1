"""Clients of every kind, which do as they like until the server dies, and write down what happens.

What a client does is drawn from its seed; how clients interleave is not.
"""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import httpx
from conformance.client import JSON, JSON_HTTP2, MSGPACK, MSGPACK_HTTP2, Client, Reply, Wire
from conformance.streams import Job, TakeStream

from .history import (
    Delivery,
    Enqueue,
    Event,
    Failure,
    History,
    Outcome,
    StreamEnd,
    StreamStart,
    Success,
    now,
)

QUEUES = ("a", "b", "c")
MOST_KEYS = {"queued": 20, "active": 20, "exists": 500}
"""Unique keys by the span that they cover."""
USUAL_PRIORITY = 1_000
MOST_UNFINISHED = 800
"""Above this producers pause, so that listings stay short."""


MOST_PUT_ASIDE = 25
"""Jobs that a worker holds without acting on them, waiting for more."""


@dataclass(frozen=True)
class WorkerKind:
    """How a worker takes."""

    wire: Wire
    prefetch: int
    queues: tuple[str, ...]
    accept: str | None = None
    """The framing to ask for, if it is not that of the wire."""


NEVER = float("inf")

PRODUCERS = (JSON, MSGPACK, JSON_HTTP2, MSGPACK_HTTP2)
WORKERS = (
    WorkerKind(JSON, 1, ("a",)),
    WorkerKind(MSGPACK_HTTP2, 8, ()),
    WorkerKind(JSON, 60, ("b", "c")),
    WorkerKind(MSGPACK, 200, ()),
    WorkerKind(JSON_HTTP2, 20, ("a", "b"), "text/event-stream"),
)


class Notebook:
    """The history, and what all clients of a test know beyond it."""

    def __init__(self, first: int = 1) -> None:
        self.history = History()
        self.unfinished = 0
        self._names = itertools.count(first)
        self._streams = itertools.count(first)
        self._goal = 0
        self._reached = asyncio.Event()

    def add(self, event: Event) -> None:
        self.history.add(event)
        match event:
            case Enqueue(outcome=Outcome.OK):
                self.unfinished += 1
            case Success(outcome=Outcome.OK) | Failure(outcome=Outcome.OK, final=True):
                self.unfinished -= 1
        if len(self.history) >= self._goal:
            self._reached.set()

    async def grows_by(self, events: int) -> None:
        """Wait until so many more things have happened."""
        self._goal = len(self.history) + events
        self._reached.clear()
        await self._reached.wait()

    def try_to(self, settlements: Sequence[Success | Failure]) -> None:
        """Hear what a client is about to ask for, before anybody knows how it ends."""

    def new_name(self) -> str:
        return f"job-{next(self._names)}"

    def new_stream(self) -> int:
        return next(self._streams)


def outcome(reply: Reply | None, *, done: Sequence[int], refused: Sequence[int]) -> Outcome:
    """What an answer means, None standing for none. Any other answer is a fault in itself."""
    if reply is None:
        return Outcome.UNKNOWN
    if reply.status in done:
        return Outcome.OK
    assert reply.status in refused, (reply.status, reply.body)
    return Outcome.REFUSED


class Actor(ABC):
    """A client with a connection pool and a will of its own."""

    def __init__(self, client: Client, notebook: Notebook, random: Random) -> None:
        self.client = client
        self.notebook = notebook
        self.random = random
        self.alone = False
        """Whether the server has gone away."""

    @abstractmethod
    async def run(self) -> None:
        """Do as it likes until the server has gone away."""

    async def post(self, target: str, document: Any = ...) -> Reply | None:
        """The answer, or None if there is none. Without a document the request has no body."""
        try:
            if document is ...:
                return await self.client.send("POST", target)
            return await self.client.post(target, document)
        except httpx.TransportError:
            self.alone = True
            return None


class Producer(Actor):
    async def run(self) -> None:
        while not self.alone:
            if self.notebook.unfinished > MOST_UNFINISHED:
                await asyncio.sleep(0.005)
            elif self.random.random() < 0.6:
                await self.enqueue()
            else:
                await self.enqueue_bulk(self.random.randint(2, 40))

    async def enqueue(self) -> None:
        job = self._new_job()
        start = now()
        reply = await self.post("/jobs", job)
        outcome(reply, done=(200, 201), refused=())
        self._note(start, [job], [reply.doc] if reply else None)

    async def enqueue_bulk(self, count: int) -> None:
        jobs = [self._new_job() for _ in range(count)]
        start = now()
        reply = await self.post("/jobs/bulk", {"jobs": jobs})
        outcome(reply, done=(200, 201), refused=())
        self._note(start, jobs, reply.doc["jobs"] if reply else None)

    def _note(self, start: float, jobs: list[Job], stored: list[Job] | None) -> None:
        end = now()
        for job, answer in itertools.zip_longest(jobs, stored or ()):
            result, id, owner = Outcome.UNKNOWN, "", ""
            if answer is not None and answer["duplicate"]:
                result, owner = Outcome.REFUSED, answer["id"]
            elif answer is not None:
                result, id = Outcome.OK, answer["id"]
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
                )
            )

    def _new_job(self) -> Job:
        random = self.random
        size = random.choice((0, 0, 50, 50, 400, 600, 3_000, 9_000))
        payload = {"name": self.notebook.new_name(), "pad": "x" * size, "size": size}
        job: Job = {"queue": random.choice(QUEUES), "type": "crash", "payload": payload}
        job["priority"] = random.randint(0, 65_535) if random.random() < 0.3 else USUAL_PRIORITY
        if random.random() < 0.15:
            job["ready_at"] = int(now()) + random.randint(0, 400)
        if random.random() < 0.15:
            scope = random.choice(list(MOST_KEYS))
            key = f"{scope}-{random.randint(1, MOST_KEYS[scope])}"
            job |= {"unique_key": key, "unique_while": scope}
        if random.random() < 0.1:
            job["retention"] = {"completed_ms": 3_600_000}
        return job


class Worker(Actor):
    """Takes jobs, and acknowledges, fails or keeps them. Now and then it hangs up."""

    def __init__(
        self, client: Client, notebook: Notebook, random: Random, kind: WorkerKind
    ) -> None:
        super().__init__(client, notebook, random)
        self._kind = kind
        self._most_put_aside = min(kind.prefetch, MOST_PUT_ASIDE)
        self._names: dict[str, str] = {}
        self._basket: list[str] = []
        """Ids to be acknowledged together."""
        self._kept = 0

    async def run(self) -> None:
        while not self.alone:
            try:
                stream, number = await self._open()
            except httpx.TransportError:
                return
            await self._work(stream, number)

    async def work_off(self) -> None:
        """Acknowledge whatever comes until nothing is left to be done."""
        stream, number = await self._open()
        while left := await self.client.count(status="scheduled,ready,in_flight"):
            for _ in range(left):
                job = await stream.job()
                self._note(job, number)
                await self._succeed(job["id"])

    async def _open(self) -> tuple[TakeStream, int]:
        kind, number, start = self._kind, self.notebook.new_stream(), now()
        queues = ",".join(kind.queues)
        stream = await self.client.take(prefetch=kind.prefetch, queue=queues, accept=kind.accept)
        window, queues_of = kind.prefetch, kind.queues
        self.notebook.add(
            StreamStart(start=start, end=now(), stream=number, window=window, queues=queues_of)
        )
        return stream, number

    async def _work(self, stream: TakeStream, number: int) -> None:
        self._kept = 0
        while not self.alone:
            try:
                job = await stream.job()
            except httpx.TransportError:
                self.alone = True
                return
            self._note(job, number)
            await self._treat(job["id"])
            if self._kept >= self._most_put_aside or self.random.random() < 0.01:
                break
        start = now()
        await stream.close()
        self.notebook.add(StreamEnd(start=start, end=now(), stream=number))
        if self.random.random() < 0.5:
            await self._empty_basket()  # too late, or not: the jobs may be somebody else's by now
        self._basket.clear()

    def _note(self, job: Job, stream: int) -> None:
        payload = job["payload"]
        self._names[job["id"]] = payload["name"]
        self.notebook.add(
            Delivery(
                start=job["dequeued_at"],
                end=now(),
                job=payload["name"],
                id=job["id"],
                stream=stream,
                attempts=job["attempts"],
                intact=payload["pad"] == "x" * payload["size"],
            )
        )

    async def _treat(self, id: str) -> None:
        match self.random.choices(("ack", "collect", "fail", "kill", "keep"), (45, 40, 8, 2, 5))[0]:
            case "ack":
                await self._succeed(id)
            case "collect":
                self._basket.append(id)
            case "fail":
                await self._fail(id, retry_at=int(now()) + self.random.randint(0, 200))
            case "kill":
                await self._fail(id, kill=True)
            case _:
                self._kept += 1
        if self._kept + len(self._basket) >= self._most_put_aside:
            await self._empty_basket()

    async def _succeed(self, id: str) -> None:
        attempt = Success(start=now(), end=NEVER, job=self._names[id], outcome=Outcome.UNKNOWN)
        self.notebook.try_to([attempt])
        reply = await self.post(f"/jobs/{id}/success")
        result = outcome(reply, done=(204,), refused=(404,))
        self.notebook.add(replace(attempt, end=now(), outcome=result))

    async def _empty_basket(self) -> None:
        basket, self._basket = self._basket, []
        if not basket:
            return
        start = now()
        attempts = {
            id: Success(start=start, end=NEVER, job=self._names[id], outcome=Outcome.UNKNOWN)
            for id in basket
        }
        self.notebook.try_to(list(attempts.values()))
        reply = await self.post("/jobs/success", {"ids": basket})
        result = outcome(reply, done=(204, 422), refused=())
        missing = reply.doc["not_found"] if reply is not None and reply.status == 422 else ()
        for id, attempt in attempts.items():
            one = Outcome.REFUSED if id in missing else result
            self.notebook.add(replace(attempt, end=now(), outcome=one))

    async def _fail(self, id: str, **fields: Any) -> None:
        attempt = Failure(
            start=now(),
            end=NEVER,
            job=self._names[id],
            outcome=Outcome.UNKNOWN,
            final="kill" in fields,
        )
        self.notebook.try_to([attempt])
        reply = await self.post(f"/jobs/{id}/failure", {"message": "failed", **fields})
        result = outcome(reply, done=(200,), refused=(404,))
        attempts = reply.doc["attempts"] if reply is not None and result is Outcome.OK else 0
        self.notebook.add(replace(attempt, end=now(), outcome=result, attempts=attempts))
