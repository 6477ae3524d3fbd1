"""The verbs that change the jobs that match a filter.

Each change is made in slices of at most 1,000 jobs, one in a tick, so that other commands pass in
between.

A sweep fixes its upper end when it begins: it ignores jobs that are stored later. The statement
that changes the jobs of a slice checks the filter again.

A sweep ends when nobody waits for it any more, since nobody was promised the rest. Equal requests
share a sweep that has not begun. If one runs, they share the next. So each sweep begins after all
jobs that its clients know are stored, and misses none of them.
"""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from zq.engine.inbox import Inbox
from zq.engine.jq.filter import JqFilter
from zq.model.budget_commands import Binding, BindSlice, Bound
from zq.model.clock import Clock
from zq.model.commands import CancelSlice, Clear, Command, DeleteSlice, PatchSlice, ReviveSlice
from zq.model.errors import SweepNotFound, TooManySweeps
from zq.model.filters import EVERYTHING, Filter
from zq.model.lifecycle import Move, Status, sources
from zq.model.patching import Patch
from zq.model.reach import Reach
from zq.service.jobs import target_of
from zq.store.api import Store

SLICE = 1000

SliceOf = Callable[[list[int], Filter], Command[Any]]


class SweepStep(NamedTuple):
    """The change of a sweep, and its filter. Equal steps are the same request."""

    verb: str
    filter: Filter
    how: Patch | Binding | bool | None = None


class Sweep:
    """One change by filter under way. Times are in milliseconds."""

    def __init__(
        self, id: str, change: SweepStep, limit: int | None, started_at: int, after: "Sweep | None"
    ) -> None:
        self.id = id
        self.change = change
        self.limit = limit
        """The most jobs that it changes."""
        self.started_at = started_at
        self.after = after
        """An equal sweep that has to end before this one begins."""
        self.has_begun = False
        self.changed = 0
        self.blocked: list[int] = []
        """The keys of jobs that it would change if they were not in flight."""
        self.progress = 0.0
        """The part of the ids that it has passed, from 0 to 1."""
        self.is_stopped = False
        self.waiting = 0
        """How many callers wait for its end."""
        self.task: asyncio.Task[int]


class Sweeps:
    """Runs sweeps as tasks of their own, up to a number at a time."""

    def __init__(
        self, store: Store, clock: Clock, filter: JqFilter, inbox: Inbox, most: int
    ) -> None:
        self._reads = store.reads
        self._clock = clock
        self._filter = filter
        self._inbox = inbox
        self._most = most
        self._numbers = itertools.count(1)
        self._under_way: dict[str, Sweep] = {}

    async def patch(self, filter: Filter, patch: Patch) -> int:
        """Patch the matching jobs that are unfinished. Return how many were changed.

        Raises `QueueOutOfReach` or, as all verbs here, `TooManySweeps`.
        """
        filter.reach.require(target_of(patch))
        unfinished = _among(filter, *sources(Move.PATCH))

        def slice_of(keys: list[int], plain: Filter) -> Command[int]:
            return PatchSlice(keys=keys, filter=plain, patch=patch)

        return await self._run(SweepStep("patch", unfinished, patch), slice_of)

    async def delete(self, filter: Filter) -> int:
        """Delete the matching jobs. Return how many. Without a filter, all go at once."""
        if filter == EVERYTHING:
            return await self._inbox.ask(Clear())
        return await self._run(SweepStep("delete", filter), DeleteSlice)

    async def cancel(self, filter: Filter, force: bool) -> int:
        """Cancel the matching jobs that can be cancelled. Return how many."""
        unfinished = _among(filter, *sources(Move.FORCE if force else Move.CANCEL))

        def slice_of(keys: list[int], plain: Filter) -> Command[int]:
            return CancelSlice(keys=keys, filter=plain, force=force)

        return await self._run(SweepStep("cancel", unfinished, force), slice_of)

    async def redrive(self, filter: Filter, limit: int | None) -> int:
        """Bring back up to `limit` matching jobs. Return how many.

        These are dead jobs and, if queues are named, also jobs that wait in them as in dead-letter
        queues. Jobs that came from another queue go back there.
        """
        filter = msgspec.structs.replace(filter, revivable=True)
        waiting = (Status.SCHEDULED, Status.READY) if filter.queues else ()
        change = SweepStep("redrive", _among(filter, Status.DEAD, *waiting))
        return await self._run(change, ReviveSlice, limit)

    async def bind(self, filter: Filter, binding: Binding) -> Sweep:
        """Change what the matching unfinished jobs draw from budgets. Return the finished sweep."""
        unfinished = _among(filter, *sources(Move.PATCH))

        def slice_of(keys: list[int], plain: Filter) -> Command[Bound]:
            return BindSlice(keys=keys, filter=plain, binding=binding)

        return await self._complete(SweepStep("bind", unfinished, binding), slice_of)

    def running(self, reach: Reach) -> list[Sweep]:
        """The sweeps under way whose reach lies within this one, the oldest first."""
        return [sweep for sweep in self._under_way.values() if _within(sweep, reach)]

    def cut_short(self, id: str, reach: Reach) -> None:
        """Stop a sweep between two slices. Finished slices stay done. Raises `SweepNotFound`."""
        sweep = self._under_way.get(id)
        if sweep is None or not _within(sweep, reach):
            raise SweepNotFound
        sweep.is_stopped = True

    async def stop(self) -> None:
        """Stop all running sweeps between two slices."""
        tasks = [sweep.task for sweep in self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, change: SweepStep, slice_of: SliceOf, limit: int | None = None) -> int:
        """Run a sweep, alone or shared. Return how many jobs it changed. Raises `TooManySweeps`."""
        return (await self._complete(change, slice_of, limit)).changed

    async def _complete(
        self, change: SweepStep, slice_of: SliceOf, limit: int | None = None
    ) -> Sweep:
        """The same, but return the sweep."""
        sweep = self._shared(change) if limit is None else None
        if sweep is None or sweep.has_begun:
            sweep = self._begin(change, slice_of, limit, after=sweep)
        sweep.waiting += 1
        try:
            await asyncio.shield(sweep.task)
            return sweep
        finally:
            sweep.waiting -= 1
            if not sweep.waiting:
                sweep.task.cancel()

    def _shared(self, change: SweepStep) -> Sweep | None:
        """The latest sweep with the same change."""
        equal = (
            sweep
            for sweep in reversed(self._under_way.values())
            if sweep.change == change and sweep.limit is None
        )
        return next(equal, None)

    def _begin(
        self, change: SweepStep, slice_of: SliceOf, limit: int | None, after: Sweep | None
    ) -> Sweep:
        # A sweep that only waits for its equal shares that one's place.
        if after is None and self._places_taken() >= self._most:
            raise TooManySweeps(self._most)
        now = self._clock.now_ms()
        sweep = Sweep(str(next(self._numbers)), change, limit, now, after)
        self._under_way[sweep.id] = sweep
        sweep.task = asyncio.create_task(self._sweep(sweep, slice_of))
        sweep.task.add_done_callback(lambda _: self._end(sweep))
        return sweep

    def _places_taken(self) -> int:
        return sum(sweep.after is None for sweep in self._under_way.values())

    def _end(self, ended: Sweep) -> None:
        del self._under_way[ended.id]
        for sweep in self._under_way.values():
            if sweep.after is ended:
                sweep.after = None

    async def _sweep(self, sweep: Sweep, slice_of: SliceOf) -> int:
        filter, limit = sweep.change.filter, sweep.limit
        plain = msgspec.structs.replace(filter, program=None)
        if filter.program is not None:
            await self._filter.check(filter.program)
        if sweep.after is not None:
            await asyncio.wait([sweep.after.task])
        sweep.has_begun = True
        first, upto = await self._reads.key_range()
        after = -1
        while after < upto and not sweep.is_stopped:
            after, keys = await self._slice(plain, filter.program, after, upto)
            if limit is not None and len(keys) > limit - sweep.changed:
                keys = keys[: limit - sweep.changed]
                after = keys[-1]
            if keys:
                done: int | Bound = await self._inbox.ask(slice_of(keys, plain))
                bound = done if isinstance(done, Bound) else Bound(done, [])
                sweep.changed += bound.changed
                sweep.blocked += bound.blocked
            if sweep.changed == limit:
                break
            sweep.progress = (after - first) / max(upto - first, 1)
        return sweep.changed

    async def _slice(
        self, plain: Filter, program: str | None, after: int, upto: int
    ) -> tuple[int, list[int]]:
        """The next place to go on from, and the matching keys up to there."""
        if program is None:
            keys = await self._reads.keys(plain, after, upto, SLICE)
            return (keys[-1] if keys else upto), keys
        jobs = await self._reads.swept_jobs(plain, after, SLICE)
        verdicts = await self._filter.matches(program, [job.payload or "null" for job in jobs])
        matching = [job.key for job, match in zip(jobs, verdicts, strict=True) if match]
        reached = jobs[-1].key if jobs else upto
        return reached, [key for key in matching if key <= upto]


def _among(filter: Filter, *statuses: Status) -> Filter:
    """The filter with these states, if it names none."""
    return msgspec.structs.replace(filter, statuses=filter.statuses or statuses)


def _within(sweep: Sweep, reach: Reach) -> bool:
    return all(map(reach.covers, sweep.change.filter.reach.prefixes))
