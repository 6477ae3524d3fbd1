"""A client that revives dead jobs: one by one, or all of a queue."""

import asyncio

from .actors import MOURNING, SHARED, SINGLE, Actor, outcome
from .history import NEVER, Outcome, Redrive, Retry, now

GRAVES = 20
"""Dead jobs that are looked at together."""
RETRIED = 2


class Reviver(Actor):
    """Does one thing after the other."""

    async def run(self) -> None:
        while not self.alone:
            await asyncio.sleep(self.random.uniform(0.05, 0.4))
            match self.random.choices(("retry", "redrive", "home"), (40, 30, 30))[0]:
                case "retry":
                    await self._retry_some()
                case "redrive":
                    await self._redrive(self.random.choice((*SHARED, SINGLE)))
                case "home":
                    await self._redrive(MOURNING)

    async def _retry_some(self) -> None:
        """Of the oldest or newest dead, and one of them twice: then, as a rule, it is not dead."""
        order = self.random.choice(("asc", "desc"))
        reply = await self.send("GET", f"/jobs?status=dead&order={order}&limit={GRAVES}")
        if reply is None:
            return
        assert reply.status == 200, reply.body
        dead = [(job["id"], job["payload"]["name"]) for job in reply.doc["jobs"]]
        chosen = self.random.choices(dead, k=RETRIED) if dead else []
        for id, name in (*chosen, *chosen[:1]):
            if self.alone:
                return
            start, reply = now(), await self.post(f"/jobs/{id}/retry")
            done = outcome(reply, done=(200,), refused=(404, 409, 429))
            self.notebook.add(Retry(start=start, end=now(), job=name, outcome=done))

    async def _redrive(self, queue: str) -> None:
        limit = self.random.choice((NEVER, NEVER, 5))
        body = {"limit": limit} if limit < NEVER else {}
        start, reply = now(), await self.post(f"/jobs/redrive?queue={queue}", body)
        done = outcome(reply, done=(200,), refused=())
        count = reply.doc["redriven"] if reply and done is Outcome.OK else 0
        self.notebook.add(
            Redrive(start=start, end=now(), queue=queue, outcome=done, limit=limit, count=count)
        )
