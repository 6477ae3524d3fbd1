"""Long work takes turns: one slice of it in each turn of the event loop, for each who asks.

What cannot be cut waits in a `FairLine`, and imports go on in a thread.
"""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Generic, TypeVar

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


async def end_task(task: asyncio.Task[Any] | None) -> None:
    """End a task, if there is one, and wait until it has ended. Its error stays in it."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


async def import_aside(*names: str) -> None:
    """Import modules in a thread that ends afterwards. Raises ImportError or OSError."""
    with ThreadPoolExecutor(1, "zq-import") as thread:
        loop = asyncio.get_running_loop()
        for name in names:
            await loop.run_in_executor(thread, import_module, name)


T = TypeVar("T")


class FairLine(Generic[T]):
    """A line of waiting items, each for its owner. One item of each owner goes first, then the
    next."""

    def __init__(self) -> None:
        self._lines: dict[object, deque[T]] = {}
        """The owners, the one whose turn is next first."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def count(self, owner: object) -> int:
        """How much waits for one owner."""
        return len(self._lines.get(owner, ()))

    def largest(self) -> object:
        """The owner for whom most waits. Something must wait."""
        return max(self._lines, key=self.count)

    def add(self, owner: object, item: T) -> None:
        """Let an item wait."""
        self._lines.setdefault(owner, deque()).append(item)
        self._count += 1

    def first(self) -> T:
        """The item that is next."""
        return next(iter(self._lines.values()))[0]

    def pop(self) -> T:
        """Take the item that is next. Its owner's turn comes after those of all others."""
        owner = next(iter(self._lines))
        line = self._lines.pop(owner)
        item = line.popleft()
        self._count -= 1
        if line:
            self._lines[owner] = line
        return item

    def pop_newest(self, owner: object) -> T:
        """Take the item of an owner that came last."""
        item = self._lines[owner][-1]
        self.remove(owner, item)
        return item

    def remove(self, owner: object, item: T) -> None:
        """Take an item that waits no longer, if it is there."""
        line = self._lines.get(owner, deque())
        if item in line:
            line.remove(item)
            self._count -= 1
            if not line:
                del self._lines[owner]
