"""Workers that claim instead of streaming, with short leases that they sometimes lose."""

from random import Random

from conformance.client import Client
from conformance.streams import Job

from .actors import LIMITED, SHARED, Actor, Notebook, outcome
from .bulk import Held, extend_all, release_all, succeed_all
from .history import (
    NEVER,
    Extend,
    Failure,
    LostClaim,
    Outcome,
    Release,
    StreamStart,
    Success,
    now,
)
from .load import delivery_of

MOST_CLAIMED = 8
MOST_REMEMBERED = 20
CLAIMED = (*SHARED, LIMITED)


class Claimer(Actor):
    """Settles, extends and releases what it has claimed, or lets the lease run out."""

    def __init__(self, client: Client, notebook: Notebook, random: Random) -> None:
        super().__init__(client, notebook, random)
        self._treated: list[Held] = []
        """Some that it has had."""

    async def run(self) -> None:
        number, start = self.notebook.new_stream(), now()
        self.notebook.add(
            StreamStart(start=start, end=start, stream=number, window=0, queues=CLAIMED)
        )
        while not self.alone:
            jobs = await self._claim(number)
            if len(jobs) > 1 and self.random.random() < 0.5:
                await self._treat_together(jobs)
            else:
                for job in jobs:
                    await self._treat(job)

    async def _claim(self, number: int) -> list[Job]:
        queue, lease_ms = self.random.choice(CLAIMED), self.random.choice((20, 100, 500, 1_500))
        wanted = {"holder": f"claimer-{number}", "max": self.random.randint(1, MOST_CLAIMED)}
        start = now()
        body = {**wanted, "lease_ms": lease_ms, "wait_ms": self.random.choice((0, 0, 50))}
        reply = await self.post(f"/queues/{queue}/claim", body)
        if outcome(reply, done=(200,), refused=()) is Outcome.UNKNOWN or reply is None:
            end = now()
            self.notebook.add(LostClaim(start=start, end=end, queue=queue, until=end + lease_ms))
            return []
        jobs: list[Job] = reply.doc["jobs"]
        for job in jobs:
            self.notebook.add(delivery_of(job, number))
        return jobs

    async def _treat(self, job: Job) -> None:
        name, lease = job["payload"]["name"], job["lease"]
        token = lease if self.random.random() < 0.7 else 0
        body: Job = {"lease": token} if token else {}
        match self.random.choices(
            ("ack", "fail", "release", "extend", "forget"), (45, 10, 10, 15, 20)
        )[0]:
            case "ack":
                start, reply = now(), await self.post(f"/jobs/{job['id']}/success", body or ...)
                done = outcome(reply, done=(204,), refused=(404, 409))
                self.notebook.add(
                    Success(start=start, end=now(), job=name, outcome=done, lease=token)
                )
            case "fail":
                failure = {"message": "failed", "retry_at": int(now()), **body}
                start, reply = now(), await self.post(f"/jobs/{job['id']}/failure", failure)
                done = outcome(reply, done=(200,), refused=(404, 409))
                attempts = reply.doc["attempts"] if reply and done is Outcome.OK else 0
                self.notebook.add(
                    Failure(
                        start=start,
                        end=now(),
                        job=name,
                        outcome=done,
                        attempts=attempts,
                        lease=token,
                    )
                )
            case "release":
                delay = {"delay_ms": self.random.choice((0, 0, 50))}
                start, reply = now(), await self.post(f"/jobs/{job['id']}/release", delay | body)
                done = outcome(reply, done=(200, 204), refused=(404, 409))
                self.notebook.add(
                    Release(start=start, end=now(), job=name, outcome=done, lease=token)
                )
            case "extend":
                await self._extend(job)

    async def _treat_together(self, jobs: list[Job]) -> None:
        """The same for all, and for some that were treated before."""
        held = [
            Held(job["id"], job["payload"]["name"], job["lease"], self._result(job)) for job in jobs
        ]
        unnamed = [each._replace(lease=0) if self.random.random() < 0.3 else each for each in held]
        now_held = {each.id for each in held}
        before = [each for each in self._treated if each.id not in now_held]
        late = {each.id: each for each in self.random.sample(before, min(len(before), 2))}.values()
        self._treated = (self._treated + held)[-MOST_REMEMBERED:]
        for way in self.random.choice((["ack"], ["release"], ["extend"], ["extend", "ack"])):
            match way:
                case "ack":
                    await succeed_all(self, [*late, *unnamed])
                case "release":
                    await release_all(self, [*late, *unnamed], self.random.choice((0, 0, 50)))
                case "extend":
                    await extend_all(self, [*late, *held], self.random.choice((50, 600, 2_000)))

    def _result(self, job: Job) -> str:
        return f"result of {job['payload']['name']}" if self.random.random() < 0.1 else ""

    async def _extend(self, job: Job) -> None:
        lease_ms = self.random.choice((50, 600))
        start = now()
        reply = await self.post(
            f"/jobs/{job['id']}/extend", {"lease": job["lease"], "lease_ms": lease_ms}
        )
        done = outcome(reply, done=(200,), refused=(404, 409))
        until = start + lease_ms
        if reply is not None:
            until = reply.doc["lease_until"] if done is Outcome.OK else NEVER
        self.notebook.add(
            Extend(
                start=start,
                end=now(),
                job=job["payload"]["name"],
                outcome=done,
                lease=job["lease"],
                until=until,
                lease_ms=lease_ms,
            )
        )
