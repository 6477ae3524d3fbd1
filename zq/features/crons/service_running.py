"""The verbs about cron: groups, and entries that enqueue a job whenever their time comes.

A change is computed from the present state, so changes are made one after the other. A caller with
a bounded reach sees the entries whose jobs go to queues within it. A change that would affect other
entries is refused.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Self, TypeVar

from msgspec import structs

from zq.engine.inbox import Inbox
from zq.features.batches.engine import Folding
from zq.features.crons.engine import AT_A_TIME, Scheduler
from zq.features.crons.model import (
    CronEntry,
    CronEntryExists,
    CronEntryNotFound,
    CronGroup,
    CronGroupNotFound,
    CronOutOfReach,
    DeleteCrons,
    EntryDraft,
    EntryState,
    GroupDraft,
    GroupPatch,
    WriteCron,
    drafted_entry,
    paused_entry,
    paused_group,
)
from zq.features.crons.model_expression import FaultyEntries, fault_of, parsed
from zq.features.crons.store import CronReads
from zq.model.clock import Clock
from zq.model.errors import TooLarge
from zq.model.patching import UNSET
from zq.model.reach import EVERYWHERE, Reach, require_room
from zq.service.services import RunningService, Services
from zq.store.api import Store

MOST_SHOWN = 64 * 1024 * 1024
"""The most bytes of a group's jobs that are shown at a time."""

T = TypeVar("T")

Group = tuple[CronGroup, Sequence[CronEntry]]
"""A group with some of its entries."""


class Crons(RunningService):
    """Groups and their entries."""

    @classmethod
    def of(cls, services: Services) -> Self:
        engine = services.engine
        return cls(engine.store, engine.clock, engine.inbox, engine[Scheduler], engine[Folding])

    def __init__(
        self, store: Store, clock: Clock, inbox: Inbox, scheduler: Scheduler, folding: Folding
    ) -> None:
        self._reads = store.reads.of(CronReads)
        self._clock = clock
        self._inbox = inbox
        self._folding = folding
        self._zone_of = scheduler.zone_of
        self._turn = asyncio.Lock()
        self._changes: set[asyncio.Task[object]] = set()
        self.lag = scheduler.lag
        """How many milliseconds ago the first entry became due."""
        self._scheduler = scheduler
        self.count = store.reads.of(CronReads).count
        """Returns how many entries there are."""

    async def stop(self) -> None:
        """Wait for the changes under way."""
        if self._changes:
            await asyncio.wait(self._changes)

    @property
    def faulty(self) -> FaultyEntries:
        """The entries whose schedules cannot be evaluated."""
        return self._scheduler.faulty

    # Looking

    async def groups(self, reach: Reach) -> list[str]:
        """The names of the groups within reach, in byte order."""
        if reach is EVERYWHERE:
            return await self._reads.groups()
        seen = [
            group
            for group, queue in await self._reads.queues()
            if queue is None or reach.covers(queue)
        ]
        return sorted(set(seen), key=str.encode)

    async def group(self, name: str, reach: Reach) -> Group:
        """A group with its entries by name. Raises `CronGroupNotFound` or `TooLarge`."""
        group = await self._reads.group(name)
        if group is None:
            raise CronGroupNotFound(name)
        entries = await self._reads.entries(name, MOST_SHOWN)
        seen = [_judged(entry, group) for entry in entries if reach.covers(entry.job.queue)]
        if entries and not seen:
            raise CronGroupNotFound(name)
        return group, seen

    async def entry(self, group: str, name: str, reach: Reach) -> CronEntry:
        """One entry. Raises `CronGroupNotFound` or `CronEntryNotFound`."""
        home, entry = await self._found(group, name, reach)
        return _judged(entry, home)

    # Changing groups

    async def replace_group(self, name: str, draft: GroupDraft, reach: Reach) -> Group:
        """Make a group have exactly this content. The result has the entries in the draft's order.

        An entry keeps its next time if its expression and effective zone stay the same. Raises
        `InvalidRequest`, `Unprocessable`, `QueueOutOfReach` or `CronOutOfReach`.
        """
        reach.require([draft])
        jobs = [entry.job for entry in draft.entries]
        reach.require_budgets(key for job in jobs for key in job.makes or ())
        await self._folding.check(entry.job for entry in draft.entries)
        return await self._alone(lambda: self._replace_group(name, draft, reach))

    async def change_group(
        self, name: str, patch: GroupPatch, reach: Reach
    ) -> tuple[CronGroup, Sequence[CronEntry] | None]:
        """Pause or resume a group, or give it another zone.

        Entries without a zone of their own use the new one. The result has no entries if their jobs
        have too many bytes to be shown. Raises `CronGroupNotFound`,
        `InvalidRequest` or `CronOutOfReach`.
        """
        return await self._alone(lambda: self._change_group(name, patch, reach))

    async def delete_group(self, name: str, reach: Reach) -> None:
        """Delete a group with its entries. Raises `CronGroupNotFound` or `CronOutOfReach`."""

        async def delete() -> None:
            await self._require(name, reach)
            if not await self._inbox.ask(DeleteCrons((name,))):
                raise CronGroupNotFound(name)

        await self._alone(delete)

    async def clear(self, reach: Reach) -> int:
        """Delete the groups that lie completely within reach, with all entries. Return how many."""

        async def delete() -> int:
            groups = set(await self._reads.groups())
            if reach is not EVERYWHERE:
                queues = await self._reads.queues()
                groups -= {group for group, queue in queues if queue and not reach.covers(queue)}
            return await self._inbox.ask(DeleteCrons(sorted(groups)))

        return await self._alone(delete)

    # Changing entries

    async def add_entry(self, group: str, draft: EntryDraft, reach: Reach) -> CronEntry:
        """Add an entry, and its group if that does not exist.

        A group with entries beyond the reach gets no new ones. Raises `CronEntryExists`,
        `CronOutOfReach`, `InvalidRequest`, `Unprocessable` or `QueueOutOfReach`.
        """
        reach.require([draft])
        reach.require_budgets(draft.job.makes or ())
        await self._folding.check([draft.job])
        return await self._alone(lambda: self._put_entry(group, draft, reach, new=True))

    async def put_entry(self, group: str, draft: EntryDraft, reach: Reach) -> CronEntry:
        """Add an entry as `add_entry` does, or replace it."""
        reach.require([draft])
        reach.require_budgets(draft.job.makes or ())
        await self._folding.check([draft.job])
        return await self._alone(lambda: self._put_entry(group, draft, reach, new=False))

    async def pause_entry(self, group: str, name: str, paused: bool, reach: Reach) -> CronEntry:
        """Pause or resume an entry. Raises `CronGroupNotFound` or `CronEntryNotFound`."""

        async def pause() -> CronEntry:
            home, before = await self._found(group, name, reach)
            entry = paused_entry(before, paused, self._clock.now_ms())
            if entry is not before:
                await self._inbox.ask(WriteCron(home, [entry], frozenset((name,)), same_jobs=True))
            return entry

        return await self._alone(pause)

    async def delete_entry(self, group: str, name: str, reach: Reach) -> None:
        """Delete an entry. Raises `CronGroupNotFound` or `CronEntryNotFound`."""

        async def delete() -> None:
            await self._found(group, name, reach)
            await self._inbox.ask(DeleteCrons((group,), name))

        await self._alone(delete)

    # How changes come about

    async def _alone(self, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change while no other is made. It is completed even if nobody waits any more."""

        async def take_turn() -> T:
            async with self._turn:
                return await change()

        task = asyncio.create_task(take_turn())
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _replace_group(self, name: str, draft: GroupDraft, reach: Reach) -> Group:
        await self._require(name, reach)
        now = self._clock.now_ms()
        before = await self._reads.group(name)
        old = {entry.name: entry for entry in await self._reads.states(name)}
        group = CronGroup(name) if before is None else before
        if draft.paused is not None:
            group = paused_group(group, draft.paused, now)
        group = structs.replace(group, timezone=draft.timezone)
        entries, kept = [], set[str]()
        for entry in draft.entries:
            former = old.get(entry.name)
            if former is not None and _goes_on(former, before, entry, group):
                kept.add(entry.name)
            entries.append(self._timed(group, entry, former, entry.name in kept, now, reach))
            if not len(entries) % AT_A_TIME:
                await asyncio.sleep(0)
        await self._require_room(reach, len(entries) - len(old))
        await self._inbox.ask(
            WriteCron(group, entries, frozenset(kept), whole=True, maker=reach.maker)
        )
        return group, entries

    async def _change_group(
        self, name: str, patch: GroupPatch, reach: Reach
    ) -> tuple[CronGroup, Sequence[CronEntry] | None]:
        await self._require(name, reach)
        group = await self._reads.group(name)
        if group is None:
            raise CronGroupNotFound(name)
        now = self._clock.now_ms()
        times: list[tuple[str, int | None]] = []
        if patch.paused is not UNSET:
            group = paused_group(group, patch.paused, now)
        if patch.timezone is not UNSET and patch.timezone != group.timezone:
            group = structs.replace(group, timezone=patch.timezone)
            times = await self._times_in(group, now)
        await self._inbox.ask(WriteCron(group, times=times))
        try:
            return await self.group(name, reach)
        except TooLarge:
            return group, None

    async def _times_in(self, group: CronGroup, now: int) -> list[tuple[str, int | None]]:
        """The next times in the zone of a group of its entries without a zone of their own."""
        zone = self._zone_of(group.timezone)
        times: list[tuple[str, int | None]] = []
        for entry in await self._reads.states(group.name):
            if entry.timezone is None and fault_of(entry.expression, None) is None:
                times.append((entry.name, parsed(entry.expression).after(now, zone)))
                if not len(times) % AT_A_TIME:
                    await asyncio.sleep(0)
        return times

    async def _put_entry(
        self, group: str, draft: EntryDraft, reach: Reach, *, new: bool
    ) -> CronEntry:
        home, before = await self._reads.entry(group, draft.name)
        if before is not None and new:
            raise CronEntryExists(group, draft.name)
        if before is not None and not reach.covers(before.job.queue):
            raise CronOutOfReach(f"cron entry '{draft.name}' of group '{group}'")
        if before is None:
            await self._require(group, reach)
            await self._require_room(reach, 1)
        home = home or CronGroup(group)
        goes_on = before is not None and _goes_on(before, home, draft, home)
        entry = self._timed(home, draft, before, goes_on, self._clock.now_ms(), reach)
        kept = frozenset((draft.name,)) if goes_on else frozenset[str]()
        await self._inbox.ask(WriteCron(home, [entry], kept, maker=reach.maker))
        return entry

    def _timed(
        self,
        group: CronGroup,
        draft: EntryDraft,
        before: EntryState | None,
        keep: bool,
        now: int,
        reach: Reach,
    ) -> CronEntry:
        """The entry that a caller's draft makes. With `keep`, it keeps its next time."""
        if keep and before is not None:
            return drafted_entry(draft, before, before.next_at, now, reach)
        zone = self._zone_of(draft.timezone or group.timezone)
        return drafted_entry(draft, before, draft.expression.first(now, zone), now, reach)

    async def _found(self, group: str, name: str, reach: Reach) -> tuple[CronGroup, CronEntry]:
        home, entry = await self._reads.entry(group, name)
        if home is None:
            raise CronGroupNotFound(group)
        if entry is None or not reach.covers(entry.job.queue):
            raise CronEntryNotFound(group, name)
        return home, entry

    async def _require_room(self, reach: Reach, more: int) -> None:
        """Raise `QuotaReached` unless a caller may make this many more entries."""
        if reach is not EVERYWHERE:
            require_room("cron entries", Counter(await self._reads.tally()), reach, more)

    async def _require(self, group: str, reach: Reach) -> None:
        """Raise `CronOutOfReach` if a group has entries beyond a reach."""
        if reach is EVERYWHERE:
            return
        for _, queue in await self._reads.queues(group):
            if queue is not None and not reach.covers(queue):
                raise CronOutOfReach(f"cron group '{group}'")


def _goes_on(
    entry: EntryState, was_in: CronGroup | None, draft: EntryDraft, group: CronGroup
) -> bool:
    """True if a draft keeps an entry's expression and effective zone, and so its next time.

    An entry without a next time was set aside, and the draft brings it back.
    """
    if entry.next_at is None:
        return False
    was = entry.timezone or (was_in and was_in.timezone)
    return entry.expression == draft.expression.text and was == (draft.timezone or group.timezone)


def _judged(entry: CronEntry, group: CronGroup) -> CronEntry:
    """The entry, with its fault if it has one."""
    fault = fault_of(entry.expression, entry.timezone or group.timezone)
    return entry if fault is None else structs.replace(entry, fault=fault)


RUNNING = (Crons,)
