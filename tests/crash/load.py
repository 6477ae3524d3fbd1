"""Workers of every kind, which act at random until the server dies."""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

import httpx
from conformance.client import JSON, JSON_HTTP2, MSGPACK, MSGPACK_HTTP2, Client, Wire
from conformance.streams import Job, StreamEnded, TakeStream

from .actors import DYING, LIMITED, MOURNING, SHARED, SINGLE, Actor, Notebook, outcome
from .bulk import KEPT, Held, extend_all, succeed_all
from .history import (
    NEVER,
    Delivery,
    Failure,
    Outcome,
    StreamEnd,
    StreamStart,
    Success,
    now,
)

CUT = Outcome.UNKNOWN
"""What becomes of a request until its answer is there."""

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
    steady: bool = False
    """Never hangs up, and keeps nothing."""
    lease_ms: int = 0
    """How long it may keep a job, if it asks for leases that end."""


WORKERS = (
    WorkerKind(JSON, 1, ("a",)),
    WorkerKind(MSGPACK_HTTP2, 8, ()),
    WorkerKind(JSON, 60, ("b", "c")),
    WorkerKind(MSGPACK, 200, ()),
    WorkerKind(JSON_HTTP2, 20, ("a", "b"), "text/event-stream"),
    WorkerKind(JSON, 12, ("a", LIMITED, DYING), lease_ms=400),
    WorkerKind(MSGPACK, 5, (DYING, MOURNING)),
)


def workers(random: Random) -> list[WorkerKind]:
    """Those of one life: in half of them the single queue has a worker of its own."""
    if random.random() < 0.5:
        return list(WORKERS)
    own = WorkerKind(MSGPACK, 10, random.choice([(), (SINGLE,)]), steady=True)
    return [own, *(kind if kind.queues else replace(kind, queues=SHARED) for kind in WORKERS)]


def delivery_of(job: Job, stream: int) -> Delivery:
    """What a job on a stream, or of a claim, says of its delivery."""
    payload = job["payload"]
    return Delivery(
        start=job["dequeued_at"],
        end=now(),
        job=payload["name"],
        id=job["id"],
        stream=stream,
        attempts=job["attempts"],
        intact=payload["pad"] == "x" * payload["size"],
        lease=job["lease"],
        until=job.get("lease_until", NEVER),
        queue=job["queue"],
    )


class Worker(Actor):
    """Takes jobs, and acknowledges, fails or keeps them. Now and then it hangs up."""

    def __init__(
        self, client: Client, notebook: Notebook, random: Random, kind: WorkerKind
    ) -> None:
        super().__init__(client, notebook, random)
        self._kind = kind
        self._most_put_aside = min(kind.prefetch, MOST_PUT_ASIDE)
        self._names: dict[str, str] = {}
        self._leases: dict[str, int] = {}
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
        while await self.client.count(status="scheduled,ready,in_flight"):
            while await stream.has_frame():
                job = await stream.frame()
                if job is not None:
                    self._note(job, number)
                    await self._succeed(job["id"])

    async def _open(self) -> tuple[TakeStream, int]:
        kind, number, start = self._kind, self.notebook.new_stream(), now()
        queues = ",".join(kind.queues)
        lease = {"lease_ms": kind.lease_ms} if kind.lease_ms else {}
        stream = await self.client.take(
            prefetch=kind.prefetch, queue=queues, accept=kind.accept, more=lease
        )
        self.notebook.add(
            StreamStart(
                start=start,
                end=now(),
                stream=number,
                window=kind.prefetch,
                queues=kind.queues,
                lease_ms=kind.lease_ms,
            )
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
            except StreamEnded:
                # A lease has run out; or the server stops in good order, which none here does.
                assert self._kind.lease_ms
                break
            self._note(job, number)
            await self._treat(job)
            if self._kind.steady:
                continue
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
        self._leases[job["id"]] = job["lease"]
        self.notebook.add(delivery_of(job, stream))

    async def _treat(self, job: Job) -> None:
        id = job["id"]
        # Who keeps the head of a group keeps all of the group from everyone.
        patience = (0, 0) if "group" in job else (40, 5)
        ways = ("ack", "fail", "kill", "collect", "keep")
        deadly = 20 if job["queue"] in (DYING, MOURNING) else 2
        match self.random.choices(ways, (45, 8, deadly, *patience))[0]:
            case "ack":
                await self._succeed(id)
            case "collect":
                self._basket.append(id)
                if self._kind.lease_ms and self.random.random() < 0.3:
                    await self._extend_basket()
            case "fail":
                await self._fail(id, retry_at=int(now()) + self.random.randint(0, 200))
            case "kill":
                await self._fail(id, kill=True)
            case _ if not self._kind.steady:
                self._kept += 1
        if self._kept + len(self._basket) >= self._most_put_aside:
            await self._empty_basket()

    def _token(self, id: str) -> int:
        """The delivery that an acknowledgement is to mean; 0: whichever is current."""
        return self._leases[id] if self.random.random() < 0.4 else 0

    async def _succeed(self, id: str) -> None:
        name, lease = self._names[id], self._token(id)
        body: Job = {"lease": lease} if lease else {}
        result = self._result(id)
        if result:
            body |= {"result": result, "retention": KEPT}
        await self._settle(
            Success(start=now(), end=NEVER, job=name, outcome=CUT, lease=lease, result=result),
            f"/jobs/{id}/success",
            body,
        )

    async def _settle(self, attempt: Success | Failure, target: str, body: Job) -> None:
        """Ask for one settlement."""
        self.notebook.try_to([attempt])
        reply = await self.post(target, body or ...)
        done = outcome(reply, done=(200, 204), refused=(404, 409))
        answered = replace(attempt, end=now(), outcome=done)
        if isinstance(answered, Failure) and reply is not None and done is Outcome.OK:
            answered = replace(answered, attempts=reply.doc["attempts"])
        self.notebook.add(answered)

    async def _empty_basket(self) -> None:
        basket, self._basket = self._basket, []
        if basket:
            await succeed_all(self, (self._held(id, self._token(id)) for id in basket))

    async def _extend_basket(self) -> None:
        """Ask for more time for all that waits in it, by the names of their deliveries."""
        held = [self._held(id, self._leases[id]) for id in dict.fromkeys(self._basket)]
        await extend_all(self, held, self.random.choice((200, 800)))

    def _held(self, id: str, lease: int) -> Held:
        return Held(id, self._names[id], lease, self._result(id))

    def _result(self, id: str) -> str:
        """What a success is to leave, mostly nothing."""
        return f"result of {self._names[id]}" if self.random.random() < 0.05 else ""

    async def _fail(self, id: str, **fields: Any) -> None:
        name, lease = self._names[id], self._token(id)
        if lease:
            fields["lease"] = lease
        final = "kill" in fields
        await self._settle(
            Failure(start=now(), end=NEVER, job=name, outcome=CUT, final=final, lease=lease),
            f"/jobs/{id}/failure",
            {"message": "failed", **fields},
        )
