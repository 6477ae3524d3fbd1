"""Long work takes turns: one slice of it in each turn of the event loop, for each who asks."""

import asyncio
from contextvars import ContextVar

SLICE = 10_000
"""The steps of a slice. A step takes about 100 ns: one value that is looked at, or 16 bytes that
are decoded or encoded."""


class Turns:
    """The line in which slices of long work wait, whatever requests they belong to."""

    def __init__(self) -> None:
        self._line = asyncio.Lock()
        self.waited = 0
        """How many slices have waited for their turn."""

    async def next(self) -> None:
        """Let the event loop serve others, and slices that wait for longer."""
        self.waited += 1
        async with self._line:
            await asyncio.sleep(0)


class Slices:
    """One piece of work. It waits after each slice, and not at all if it has only one."""

    __slots__ = ("_left", "_turns")

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._left = SLICE

    async def count(self, steps: int) -> None:
        """Count steps that are done, and wait for a turn if they complete a slice."""
        self._left -= steps
        if self._left <= 0:
            await self._turns.next()
            self._left = SLICE


ASKER: ContextVar[object] = ContextVar("zq-asker", default=None)
"""The sender of the request that is being served, as a function, for few ask. It is the name of a
key, or an address where no keys are needed. None stands for the server itself."""


def asker() -> object:
    """The sender of the request under way."""
    known = ASKER.get()
    return known() if callable(known) else known
