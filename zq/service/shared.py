"""Reads that callers at the same time share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class SharedReads(Generic[K, T]):
    """Reads by a key. Callers with the same key at the same time share one.

    A caller during a read shares the next one with all other callers. The running read may have
    begun before the caller's last change.
    """

    def __init__(self, read: Callable[[K], Awaitable[T]]) -> None:
        self._read = read
        self._running: dict[K, asyncio.Task[T]] = {}
        self._next: dict[K, asyncio.Task[T]] = {}

    async def get(self, key: K) -> T:
        """The result of a read that ends now or later. The caller must not change it."""
        task = self._next.get(key)
        if task is None:
            task = asyncio.create_task(self._run(key, self._running.get(key)))
            # All callers may be gone when it fails.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            self._next[key] = task
        return await asyncio.shield(task)

    async def _run(self, key: K, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait([before])
        task = self._running[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._running[key] is task:
                del self._running[key]
