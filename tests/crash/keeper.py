"""A client that changes settings of queues, pauses them, and opens them again."""

import asyncio
from typing import Any

from .actors import DYING, LIMITED, MOURNING, QUEUES, STALLING, Actor, outcome
from .history import NEVER, Setting, now

Fields = dict[str, Any]


class Keeper(Actor):
    """At most one queue is paused at a time, and whatever a dead server left so is opened.

    But for the dead-letter queue, which in half of the lives only a redrive empties.
    """

    async def furnish(self) -> None:
        """Before there is any job: set what is to hold from the beginning."""
        await self._set(LIMITED, concurrency=3, max_depth=40)
        await self._set(STALLING, stall_limit=1)
        await self._set(DYING, dead_letter=MOURNING)
        await self._set(MOURNING, paused=True)

    async def run(self) -> None:
        await self._pause()  # what is left paused stays so for a while
        for queue in QUEUES:
            await self._set(queue)
        await self._set(MOURNING, paused=self.random.random() < 0.5)
        while not self.alone:
            queue = self.random.choice(QUEUES)
            await self._set(queue, paused=True, **self._drawn(queue))
            await self._pause()
            await self._set(queue, **self._drawn(queue))
            await self._pause()

    async def open_all(self) -> None:
        """Let every queue deliver as fast as it can."""
        for queue in (*QUEUES, MOURNING):
            await self._set(queue, concurrency=None, rate=None)

    def _drawn(self, queue: str) -> Fields:
        match queue:
            case _ if queue == STALLING:
                return {"stall_limit": self.random.randint(1, 2)}
            case _ if queue == LIMITED:
                return {
                    "concurrency": self.random.choice((2, 5)),
                    "max_depth": self.random.choice((40, 60)),
                }
            case _ if queue == DYING:
                return {"rate": self.random.choice((None, 30, 100))}
        return {}

    async def _pause(self) -> None:
        await asyncio.sleep(self.random.uniform(0.02, 0.1))

    async def _set(self, queue: str, *, paused: bool = False, **fields: Any) -> None:
        if self.alone:
            return
        start = now()
        reply = await self.send("PATCH", f"/queues/{queue}/settings", {"paused": paused} | fields)
        done = outcome(reply, done=(200,), refused=())
        fields.pop("dead_letter", None)
        told: Fields = {name: NEVER if value is None else value for name, value in fields.items()}
        self.notebook.add(
            Setting(start=start, end=now(), queue=queue, outcome=done, paused=paused, **told)
        )
