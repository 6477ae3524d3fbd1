"""Changes by filter: slices of at most 1,000 jobs, one a tick, so that all else passes between.

A sweep fixes its upper end when it begins: jobs stored later are not its concern. Each slice checks
the filter again in the statement that changes it. A sweep outlives the request that began it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from zq.engine.jq_filter import JqFilter
from zq.model.commands import CancelSlice, ChangeSlice, Command, DeleteSlice
from zq.model.filters import Filter
from zq.model.lifecycle import Move, sources
from zq.model.patching import Patch
from zq.store import reads
from zq.store.store import Store

SLICE = 1000

Submit = Callable[[Command], Awaitable[object]]


class Sweeps:
    """Runs sweeps as tasks of their own."""

    def __init__(self, store: Store, filter: JqFilter, submit: Submit) -> None:
        self._store = store
        self._filter = filter
        self._submit = submit
        self._tasks: set[asyncio.Task[int]] = set()

    async def patch(self, filter: Filter, patch: Patch) -> int:
        """Patch what matches and is unfinished; how many were changed."""
        statuses = filter.statuses or tuple(sources(Move.PATCH))
        unfinished = msgspec.structs.replace(filter, statuses=statuses)

        def slice_of(keys: list[int], plain: Filter) -> Command:
            return ChangeSlice(keys=keys, filter=plain, patch=patch)

        return await self._run(self._sweep(unfinished, slice_of))

    async def delete(self, filter: Filter) -> int:
        """Delete what matches; how many went."""
        return await self._run(self._sweep(filter, DeleteSlice))

    async def cancel(self, filter: Filter, force: bool) -> int:
        """Cancel what matches and can be cancelled; how many it were."""
        statuses = filter.statuses or tuple(sources(Move.FORCE if force else Move.CANCEL))
        unfinished = msgspec.structs.replace(filter, statuses=statuses)

        def slice_of(keys: list[int], plain: Filter) -> Command:
            return CancelSlice(keys=keys, filter=plain, force=force)

        return await self._run(self._sweep(unfinished, slice_of))

    async def stop(self) -> None:
        """Cut running sweeps short between two slices."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, sweep: Coroutine[Any, Any, int]) -> int:
        task = asyncio.create_task(sweep)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _sweep(self, filter: Filter, command: Callable[[list[int], Filter], Command]) -> int:
        plain = msgspec.structs.replace(filter, program=None)
        if filter.program is not None:
            await self._filter.check(filter.program)
        upto = await self._store.read(reads.last_key)
        after, total = -1, 0
        while after < upto:
            after, keys = await self._slice(plain, filter.program, after, upto)
            if keys:
                changed = await self._submit(command(keys, plain))
                assert isinstance(changed, int)
                total += changed
        return total

    async def _slice(
        self, plain: Filter, program: str | None, after: int, upto: int
    ) -> tuple[int, list[int]]:
        """The next place to go on from, and the keys up to there that match."""
        if program is None:
            keys = await self._store.read(reads.list_keys, plain, after, upto, SLICE)
            return (keys[-1] if keys else upto), keys
        # As of time 0 nothing is purged: sweeps see what readers no longer do.
        jobs = await self._store.read(reads.list_jobs, plain, after, False, SLICE, 0)
        verdicts = await self._filter.matches(program, [job.payload or "null" for job in jobs])
        matching = [job.key for job, match in zip(jobs, verdicts, strict=True) if match]
        reached = jobs[-1].key if jobs else upto
        return reached, [key for key in matching if key <= upto]
