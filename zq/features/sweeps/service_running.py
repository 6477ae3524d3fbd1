"""The verbs that change the jobs that match a filter.

Each change is made in slices of at most 1,000 jobs, one in a tick, so that other commands pass in
between.

A sweep fixes its upper end when it begins: it ignores jobs that are stored later. A preview fixes
it before that: whoever passes its `upto` on changes none of the jobs that came after the look. The
statement that changes the jobs of a slice checks the filter again.

A sweep ends when nobody waits for it any more, since nobody was promised the rest. Equal requests
share a sweep that has not begun. If one runs, they share the next. So each sweep begins after all
jobs that its clients know are stored, and misses none of them.

Each slice stores what its sweep has done so far, in its own transaction. So what was changed can
be told, and a cancellation can be undone, even after the server was killed in the middle.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from zq.engine.inbox import Inbox
from zq.engine.jq.filter import JqFilter
from zq.features.budgets.model_jobs import Binding, BindSlice, Bound
from zq.features.search.store import SearchReads
from zq.features.sweeps.model import (
    NOBODY,
    Confirmation,
    EndSweep,
    NotConfirmed,
    PreviewNeeded,
    PreviewStale,
    SweepAuthor,
    SweepMark,
    SweepNotFound,
    SweepOutline,
    SweepPreview,
    TooManySweeps,
    UndoSlice,
)
from zq.features.sweeps.settings import SweepSettings
from zq.model.clock import Clock
from zq.model.commands import (
    CancelJob,
    CancelSlice,
    Clear,
    Command,
    DeleteSlice,
    Entered,
    PatchSlice,
    ReviveSlice,
)
from zq.model.filters import (
    EVERYTHING,
    Filter,
    counts_of,
    is_counted,
    refuse_uncancellable,
    refuse_unchangeable,
    refuse_unrevivable,
)
from zq.model.ids import Mint
from zq.model.job import JobRecord
from zq.model.lifecycle import Move, Status, sources
from zq.model.patching import Patch
from zq.model.reach import Reach
from zq.service.queues import QueueCounts
from zq.service.services import RunningService, Services
from zq.store.api import Store, as_json

MOST_UNTYPED = 100
"""The most jobs that may be deleted without a word that confirms it."""


class SweepChange(NamedTuple):
    """The change that a sweep makes, and the jobs that it concerns. Equal changes are the same
    request."""

    verb: str
    filter: Filter
    how: Patch | Binding | bool | None = None


class Sweep:
    """One change by filter under way. Times are in milliseconds."""

    def __init__(
        self,
        id: int,
        change: SweepChange,
        limit: int | None,
        outline: SweepOutline,
        after: "Sweep | None",
    ) -> None:
        self.id = id
        self.change = change
        self.limit = limit
        """The most jobs that it changes."""
        self.outline = outline
        self.after = after
        """An equal sweep that has to end before this one begins."""
        self.has_begun = False
        self.changed = 0
        self.blocked: list[int] = []
        """The keys of jobs that it would change if they were not in flight."""
        self.kept: Counter[str] = Counter()
        """How many jobs it has left as they were, by the reasons."""
        self.passed = 0.0
        """The part of the ids that it has passed, from 0 to 1."""
        self.is_stopped = False
        self.waiting = 0
        """How many callers wait for its end."""
        self.task: asyncio.Task[int]
        self._text = as_json(outline)

    def mark(self, passed: float) -> SweepMark:
        """The mark of a slice. `passed` is the part of the ids that the sweep has passed."""
        return SweepMark(self.id, self._text, passed)

    def add(self, done: int | Bound | Entered) -> Sequence[int]:
        """Count what a slice has done. Return the keys that it has left to the next one."""
        self.changed += done if isinstance(done, int) else done.changed
        if isinstance(done, int):
            return ()
        self.kept.update(done.kept)
        if isinstance(done, Entered):
            return done.rest
        self.blocked += done.blocked
        return ()


def changeable(filter: Filter) -> Filter:
    """The matching jobs that can be patched. Raises `Unprocessable` for finished ones."""
    refuse_unchangeable(filter)
    return unfinished(filter)


def unfinished(filter: Filter) -> Filter:
    """The matching jobs that wait."""
    return _among(filter, *sources(Move.PATCH))


def cancellable(filter: Filter, force: bool) -> Filter:
    """The matching jobs that can be cancelled. Raises `Unprocessable` for others."""
    refuse_uncancellable(filter, force)
    return _among(filter, *sources(Move.FORCE if force else Move.CANCEL))


def revivable(filter: Filter) -> Filter:
    """The matching jobs that can be brought back. Raises `Unprocessable` for others."""
    refuse_unrevivable(filter)
    waiting = (Status.SCHEDULED, Status.READY) if filter.queues else ()
    return _among(msgspec.structs.replace(filter, revivable=True), Status.DEAD, *waiting)


AFFECTED: dict[str, Callable[[Filter, bool], Filter]] = {
    "delete": lambda filter, _force: filter,
    "cancel": cancellable,
    "requeue": lambda filter, _force: revivable(filter),
    "patch": lambda filter, _force: changeable(filter),
}
"""The changes that can be previewed, and which of the matching jobs each of them changes."""


def word_for(verb: str, seen: SweepPreview) -> str | None:
    """The word that confirms a deletion of many jobs: the queue, or `delete` if there are several.

    None if there are so few that no word is needed, or if the change is another one.
    """
    if verb != "delete" or (seen.exact and seen.jobs <= MOST_UNTYPED):
        return None
    queues = {queue for queue, _ in seen.places}
    return queues.pop() if len(queues) == 1 else "delete"


def _among(filter: Filter, *statuses: Status) -> Filter:
    """The filter with these states, if it names none."""
    return msgspec.structs.replace(filter, statuses=filter.statuses or statuses)


SLICE = 1000

MOST_LOOKS = 11
"""The slices that a preview reads: it counts 10,000 jobs, and sees whether there are more."""

MOST_LOOKED = 256
SEEN_FOR_S = 600
"""How many previews are remembered for the sweeps that they announce, and for how long they count
as a confirmation."""

SliceOf = Callable[[list[int], Filter, SweepMark], Command[Any]]


class Sweeps(RunningService):
    """Runs sweeps as tasks of their own, up to a number at a time."""

    @classmethod
    def of(cls, services: Services) -> Self:
        engine = services.engine
        return cls(
            services.store,
            services.clock,
            services.counts,
            services.filter,
            engine.inbox,
            engine.mint,
            services.settings[SweepSettings].max_sweeps,
        )

    def __init__(
        self,
        store: Store,
        clock: Clock,
        counts: QueueCounts,
        filter: JqFilter,
        inbox: Inbox,
        mint: Mint,
        most: int,
    ) -> None:
        self._reads = store.reads
        self._searched = store.reads.of(SearchReads)
        self._clock = clock
        self._counts = counts
        self._filter = filter
        self._inbox = inbox
        self._mint = mint
        self._most = most
        # Each of several servers has numbers of its own.
        slots, last = store.slots, store.at_start.found["last_sweep"]
        self._numbers = itertools.count((last // slots + 1) * slots + store.slot, slots)
        self._under_way: dict[int, Sweep] = {}
        self._looked: dict[Filter, tuple[SweepPreview, float]] = {}
        """The results and times of previews, by the filters that were bound to them."""

    async def patch(self, filter: Filter, patch: Patch, author: SweepAuthor = NOBODY) -> Sweep:
        """Patch the matching jobs that are unfinished. Return the finished sweep.

        Raises `QueueOutOfReach` or, as all verbs here, `Unprocessable` for a filter that names
        states in which the change leaves jobs alone, or `TooManySweeps`.
        """
        wanted = changeable(filter)
        filter.reach.require([patch])

        def slice_of(keys: list[int], plain: Filter, mark: SweepMark) -> Command[Entered]:
            return PatchSlice(keys, plain, patch, mark)

        return await self._complete(SweepChange("patch", wanted, patch), slice_of, author)

    async def delete(self, filter: Filter, author: SweepAuthor = NOBODY) -> int:
        """Delete the matching jobs. Return how many. Without a filter, all go at once."""
        if filter == EVERYTHING:
            return await self._inbox.ask(Clear())
        done = await self._complete(SweepChange("delete", filter), DeleteSlice, author)
        return done.changed

    async def cancel(self, filter: Filter, force: bool, author: SweepAuthor = NOBODY) -> Sweep:
        """Cancel the matching jobs that can be cancelled. Return the finished sweep."""
        wanted = cancellable(filter, force)

        def slice_of(keys: list[int], plain: Filter, mark: SweepMark) -> Command[int]:
            return CancelSlice(keys, plain, force, mark)

        return await self._complete(SweepChange("cancel", wanted, force), slice_of, author)

    async def cancel_one(
        self, key: int, force: bool, reach: Reach, author: SweepAuthor = NOBODY
    ) -> tuple[JobRecord, int | None]:
        """Cancel a job so that it can be undone as a sweep. Return it, and the sweep's id.

        There is none if the job is not retained. Raises what `Jobs.cancel` raises.
        """
        one = Filter(keys=(key,), reach=reach)
        outline = SweepOutline("cancel", one, self._clock.now_ms(), author)
        mark = SweepMark(next(self._numbers), as_json(outline), 1)
        job = await self._inbox.ask(CancelJob(key=key, force=force, reach=reach, mark=mark))
        return job, None if job.purge_at is None else mark.id

    async def requeue(
        self, filter: Filter, limit: int | None, author: SweepAuthor = NOBODY
    ) -> Sweep:
        """Bring back up to `limit` matching jobs. Return the finished sweep.

        These are dead jobs and, if queues are named, also jobs that wait in them as in dead-letter
        queues. Jobs that came from another queue go back there.
        """
        change = SweepChange("requeue", revivable(filter))
        return await self._complete(change, ReviveSlice, author, limit)

    async def undo(self, filter: Filter, author: SweepAuthor = NOBODY) -> Sweep:
        """Take back the jobs that the sweep `filter.swept` has cancelled. Return what did so."""
        return await self._complete(SweepChange("undo", filter), UndoSlice, author)

    async def bind(self, filter: Filter, binding: Binding, author: SweepAuthor = NOBODY) -> Sweep:
        """Change what the matching unfinished jobs draw from budgets. Return the finished sweep."""
        wanted = unfinished(filter)

        def slice_of(keys: list[int], plain: Filter, mark: SweepMark) -> Command[Bound]:
            return BindSlice(keys, plain, binding, mark)

        return await self._complete(SweepChange("bind", wanted, binding), slice_of, author)

    async def preview(self, filter: Filter, asked: Filter | None = None) -> SweepPreview:
        """How many jobs match now, and where they are. Raises the errors of `JqFilter`.

        That is exact for queues and statuses, of which counts are kept, and else up to 10,000 jobs.
        A sweep changes those that match `AFFECTED`; `asked` is the filter before that.
        """
        # What is counted first lies below the upper end that is read after it.
        seen = await self._tally(filter, filter.upto)
        unaffected = None
        if asked is not None and asked != filter and seen.exact:
            whole = await self._tally(asked, seen.upto)
            unaffected = max(whole.jobs - seen.jobs, 0) if whole.exact else None
        self._remember(msgspec.structs.replace(filter, upto=seen.upto), seen)
        return seen._replace(unaffected=unaffected)

    async def confirm(self, verb: str, filter: Filter, confirmation: Confirmation) -> None:
        """Check that a change would do no more than what a preview of it has told.

        `filter` is that of `AFFECTED`. Raises `PreviewNeeded`, `PreviewStale` or `NotConfirmed`.
        """
        seen, at = self._looked.get(filter, (None, 0.0))
        if seen is None or self._clock.monotonic() - at > SEEN_FOR_S:
            raise PreviewNeeded(
                "no preview of this change is known, or it is older than"
                f" {SEEN_FOR_S // 60} minutes: look again, by GET /sweeps/preview with the same"
                " filter and verb, and send its `upto` and `count`"
            )
        if seen.jobs != confirmation.jobs:
            raise PreviewStale(
                f"the preview has counted {seen.jobs:,} jobs, and not {confirmation.jobs:,}:"
                " look again"
            )
        word = word_for(verb, seen)
        if word not in (None, confirmation.typed):
            raise NotConfirmed(
                f"to delete {seen.jobs:,} jobs, `typed` must be {word!r}: type that to confirm"
            )
        now = (await self._tally(filter, seen.upto)).jobs
        if now > seen.jobs:
            raise PreviewStale(
                f"{now:,} jobs match now, and the preview has counted {seen.jobs:,}: look again"
            )

    async def _tally(self, filter: Filter, upto: int | None) -> SweepPreview:
        """Count the jobs that match up to a key, by their places."""
        if is_counted(filter):
            places = counts_of(await self._counts.read(), filter)
            return SweepPreview(places.total(), True, self._end_of_now(upto), places)
        if filter.program is not None:
            await self._filter.check(filter.program)
        upto = self._end_of_now(upto)
        places, after = Counter[tuple[str, Status]](), -1
        for _ in range(MOST_LOOKS):
            after, keys = await self._slice(filter, after, upto)
            if keys:
                places += await self._searched.places(keys)
            if after >= upto:
                return SweepPreview(places.total(), True, upto, places)
        return SweepPreview(places.total(), False, upto, places)

    def _end_of_now(self, upto: int | None) -> int:
        if upto is None:
            # A key of its own tells nothing of jobs beyond the caller's reach.
            (upto,) = self._mint.take(1, self._clock.now_ms())
        return upto

    def running(self, reach: Reach) -> list[Sweep]:
        """The sweeps under way whose reach lies within this one, the oldest first."""
        return [sweep for sweep in self._under_way.values() if _within(sweep, reach)]

    def under_way(self, id: int, reach: Reach) -> Sweep | None:
        """A sweep under way, if its reach lies within this one."""
        sweep = self._under_way.get(id)
        return sweep if sweep is not None and _within(sweep, reach) else None

    def cut_short(self, id: int, reach: Reach) -> None:
        """Stop a sweep between two slices. Finished slices stay done. Raises `SweepNotFound`."""
        sweep = self.under_way(id, reach)
        if sweep is None:
            raise SweepNotFound
        sweep.is_stopped = True

    async def stop(self) -> None:
        """Stop all running sweeps between two slices."""
        tasks = [sweep.task for sweep in self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remember(self, bound: Filter, seen: SweepPreview) -> None:
        self._looked.pop(bound, None)
        self._looked[bound] = seen, self._clock.monotonic()
        if len(self._looked) > MOST_LOOKED:
            del self._looked[next(iter(self._looked))]

    async def _complete(
        self,
        change: SweepChange,
        slice_of: SliceOf,
        author: SweepAuthor,
        limit: int | None = None,
    ) -> Sweep:
        """Change the matching jobs, and return the sweep that did it. Raises `TooManySweeps`."""
        sweep = self._shared(change) if limit is None else None
        if sweep is None or sweep.has_begun:
            sweep = self._begin(change, slice_of, author, limit, after=sweep)
        sweep.waiting += 1
        try:
            await asyncio.shield(sweep.task)
            return sweep
        finally:
            sweep.waiting -= 1
            if not sweep.waiting:
                sweep.task.cancel()

    def _shared(self, change: SweepChange) -> Sweep | None:
        """The latest sweep with the same change."""
        equal = (
            sweep
            for sweep in reversed(self._under_way.values())
            if sweep.change == change and sweep.limit is None
        )
        return next(equal, None)

    def _begin(
        self,
        change: SweepChange,
        slice_of: SliceOf,
        author: SweepAuthor,
        limit: int | None,
        after: Sweep | None,
    ) -> Sweep:
        # A sweep that only waits for its equal shares that one's place.
        if after is None and self._places_taken() >= self._most:
            raise TooManySweeps(self._most)
        seen, _ = self._looked.get(change.filter, (None, 0.0))
        now, counted = self._clock.now_ms(), None if seen is None else seen.jobs
        outline = SweepOutline(change.verb, change.filter, now, author, counted)
        sweep = Sweep(next(self._numbers), change, limit, outline, after)
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
        if filter.program is not None:
            await self._filter.check(filter.program)
        if sweep.after is not None:
            await asyncio.wait([sweep.after.task])
        sweep.has_begun = True
        first, upto = await self._reads.key_range()
        if filter.upto is not None:
            upto = min(upto, filter.upto)
        after, marked = -1, 0.0
        while after < upto and not sweep.is_stopped:
            after, keys = await self._slice(filter, after, upto)
            if limit is not None and len(keys) > limit - sweep.changed:
                keys = keys[: limit - sweep.changed]
                after = keys[-1]
            passed = (after - first) / max(upto - first, 1) if after < upto else 1
            while keys:
                done = await self._inbox.ask(slice_of(keys, filter.plain, sweep.mark(passed)))
                keys = list(sweep.add(done))
                marked = passed
            sweep.passed = passed
            if sweep.changed == limit:
                sweep.passed = 1
                break
        if sweep.changed and marked < sweep.passed == 1:
            await self._inbox.ask(EndSweep(sweep.id))
        return sweep.changed

    async def _slice(self, filter: Filter, after: int, upto: int) -> tuple[int, list[int]]:
        """The next place to go on from, and the matching keys up to there."""
        if filter.is_plain:
            keys = await self._reads.keys(filter, after, upto, SLICE)
            return (keys[-1] if len(keys) == SLICE else upto), keys
        wanted, reached = filter.plain, upto
        if filter.words:
            look = await self._searched.swept_words(filter, after)
            reached = upto if look.reached is None else look.reached
            if filter.program is None or not look.keys:
                return reached, [key for key in look.keys if key <= upto]
            wanted = Filter(keys=tuple(look.keys))
        jobs = await self._reads.swept_jobs(wanted, after, SLICE)
        assert filter.program is not None
        payloads = [job.payload or "null" for job in jobs]
        verdicts = await self._filter.matches(filter.program, payloads)
        matching = [job.key for job, match in zip(jobs, verdicts, strict=True) if match]
        if jobs and len(jobs) != len(wanted.keys or ()):
            # Large payloads may have ended the slice early, but never before its first job.
            reached = jobs[-1].key
        return reached, [key for key in matching if key <= upto]


def _within(sweep: Sweep, reach: Reach) -> bool:
    return all(map(reach.covers, sweep.change.filter.reach.prefixes))


RUNNING = (Sweeps,)
