"""Somebody who pauses queues, opens them again, and limits their stalls."""

import asyncio

from .actors import QUEUES, STALLING, Actor, outcome
from .history import Setting, now


class Keeper(Actor):
    """At most one queue is paused at a time, and whatever a dead server left so is opened."""

    async def run(self) -> None:
        await self._pause()  # what is left paused stays so for a while
        await self.open_all()
        while not self.alone:
            queue = self.random.choice(QUEUES)
            await self._set(queue, paused=True)
            await self._pause()
            await self._set(queue, paused=False)
            await self._pause()

    async def open_all(self) -> None:
        """Let every queue deliver."""
        for queue in QUEUES:
            await self._set(queue, paused=False)

    async def _pause(self) -> None:
        await asyncio.sleep(self.random.uniform(0.02, 0.1))

    async def _set(self, queue: str, *, paused: bool) -> None:
        if self.alone:
            return
        limit = self.random.randint(1, 2) if queue == STALLING else -1
        start = now()
        reply = await self.send(
            "PATCH",
            f"/queues/{queue}/settings",
            {"paused": paused} | ({"stall_limit": limit} if limit >= 0 else {}),
        )
        done = outcome(reply, done=(200,), refused=())
        self.notebook.add(
            Setting(
                start=start, end=now(), queue=queue, outcome=done, paused=paused, stall_limit=limit
            )
        )
