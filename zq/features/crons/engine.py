"""Fires cron entries that are due: it reads them, computes their next times, and asks for a tick.

It knows when the first entry is due and reads nothing before, however many entries there are. The
store has every next time. If firings were missed while the server was stopped or late, each entry
makes up for them with one job.

An entry whose schedule cannot be evaluated here is set aside when it is due: it has no next time.
All others fire. A survey of all schedules names such entries, and brings those back that can be
evaluated again.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, tzinfo
from functools import cache
from typing import Self

from msgspec import structs

from zq.engine.engine import Engine, RunningPart
from zq.engine.inbox import Inbox
from zq.engine.turns import end_task
from zq.features.batches.engine import Folding
from zq.features.crons.model import NEXT_FIRING, RETRY_MS, CronSchedule, DueCron, Fire, Firing
from zq.features.crons.model_expression import (
    NONE_FAULTY,
    FaultyEntries,
    FaultyEntry,
    fault_of,
    parsed,
    zone_named,
)
from zq.features.crons.store import FIRST_PLACE, CronReads, EntryPlace
from zq.model.clock import Clock
from zq.model.commands import Enqueue
from zq.model.errors import DiskFailed, ServiceUnavailable, TooLarge, Unprocessable, ZqError
from zq.model.ids import Mint
from zq.store.api import Store
from zq.store.errors import StoreError

log = logging.getLogger(__name__)

MOST_FIRINGS = 512
"""The most entries that one tick fires."""

MOST_BYTES = 8 * 1024 * 1024
"""The most bytes of the jobs of these entries."""

AT_A_TIME = 16
"""How many next times are computed before other tasks get a turn. Each takes about 0.1 ms."""

AGAIN_MS = 100
"""The pause if nothing was due after all: somebody has changed the entry."""

NAP_MS = 1000
"""The wall clock is read this often, since it may be set."""

SLIGHT_MS = 60_000
"""If the clock is set back by no more than this, the scheduler waits for it to catch up."""

LARGE_MS = 3 * 3_600_000
"""If the clock is set back by more, it was wrong before: all entries go by the new time."""

SURVEY_S = 60.0
"""The time between two surveys while entries are set aside, in seconds."""

MOST_NAMED = 10
"""The most entries set aside that are named."""

Admit = Callable[[int, int], object]


class Scheduler(RunningPart):
    """Fires cron entries while it runs. `zone` gives the time zone of entries without one."""

    @classmethod
    def of(cls, engine: Engine) -> Self:
        scheduler = cls(
            engine.store,
            engine.clock,
            engine.inbox,
            engine.mint,
            cache(_local_zone),
            admit=engine.admission.admit,
            folding=engine[Folding],
            ready=engine.steps.told,
        )
        engine.when_found[NEXT_FIRING] = scheduler.reschedule
        return scheduler

    def __init__(
        self,
        store: Store,
        clock: Clock,
        inbox: Inbox,
        mint: Mint,
        zone: Callable[[], tzinfo],
        *,
        admit: Admit,
        folding: Folding,
        ready: Callable[[], Awaitable[object]],
    ) -> None:
        """`admit` raises an error if there is no room for a number of jobs and their bytes.

        `ready` is called before entries fire: dates that a step of the clock made due are counted
        first. `folding` plans the jobs that come with a batch.
        """
        self._admit = admit
        self._folding = folding
        self._ready = ready
        self._crons = store.reads.of(CronReads)
        self._clock = clock
        self._steady = store.steady
        self._inbox = inbox
        self._mint = mint
        self._zone = zone
        self._next = store.at_start.found[NEXT_FIRING]
        self._awake = asyncio.Event()
        self._seen = 0
        """The latest wall time so far."""
        self.faulty = NONE_FAULTY
        """The entries whose schedules cannot be evaluated, as the last survey has found them."""
        self._survey_at = -math.inf
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fire entries."""
        self._task = asyncio.create_task(self._run(), name="zq-cron")

    async def stop(self) -> None:
        """End. Nothing fires any more."""
        await end_task(self._task)

    def reschedule(self, next_firing: int | None) -> None:
        """Learn when the first entry is due, if there is one."""
        self._next = next_firing
        self._awake.set()

    def lag(self) -> int:
        """How many milliseconds ago the first entry became due."""
        return 0 if self._next is None else max(self._clock.now_ms() - self._next, 0)

    def zone_of(self, name: str | None) -> tzinfo:
        """The zone with this name, or the server's own. Raises `InvalidRequest`."""
        return self._zone() if name is None else zone_named(name)

    async def _run(self) -> None:
        # This run of the server cannot know which times were computed by a clock that was ahead.
        ahead = self._next is not None
        while True:
            try:
                now, _ = self._steady.read()
                if ahead or self._seen - now > SLIGHT_MS:
                    await self._retime(now)
                    ahead, self._seen = False, now
                    continue
                if self._survey_at <= self._clock.monotonic():
                    await self._survey(now)
                    # The clock has gone on meanwhile: an entry may be due by now.
                    continue
                self._seen = max(self._seen, now)
                if self._next is None or self._next > now:
                    await self._doze(now)
                elif not await self._fire(now):
                    await self._pause(AGAIN_MS)
            except DiskFailed:
                return
            except (ZqError, StoreError) as error:
                log.warning(f"cron waits: {error}")
                await self._pause(RETRY_MS)
            except Exception as error:
                log.error("cron has failed and is tried again", exc_info=error)
                await self._pause(RETRY_MS)

    async def _doze(self, now: int) -> None:
        """Wait until an entry is due or another entry becomes the first, at most for a nap."""
        self._awake.clear()
        timer = None
        if self._next is not None or self.faulty.entries:
            delay = NAP_MS if self._next is None else min(self._next - now, NAP_MS)
            timer = self._clock.call_later(delay / 1000, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _pause(self, ms: int) -> None:
        """Wait for `ms`, whatever happens."""
        over = asyncio.Event()
        timer = self._clock.call_later(ms / 1000, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    async def _fire(self, now: int) -> int:
        """Fire the entries that are due, or the first of them. Return how many have moved on."""
        await self._ready()
        due = _first(await self._crons.due(now, MOST_FIRINGS))
        if not due:
            return 0
        self._admit(len(due), sum(cron.size for cron in due))
        # A key of an entry that is paused or has changed stays unused. That does no harm.
        keys = self._mint.take(len(due), now)
        firings: list[Firing] = []
        folding: list[Firing] = []
        for index, (cron, key) in enumerate(zip(due, keys, strict=True), 1):
            if fault_of(cron.expression, cron.zone) is not None:
                firings.append(_set_aside(cron))
                self._survey_at = -math.inf
            else:
                (folding if cron.batched else firings).append(self._firing(cron, now, key))
            if not index % AT_A_TIME:
                await asyncio.sleep(0)
        moved = await self._inbox.ask(Fire(firings)) if firings else 0
        for firing in folding:
            moved += await self._fold(firing, now)
        return moved

    async def _fold(self, firing: Firing, now: int) -> int:
        """Fire an entry whose job comes with a batch. If the fold fails, the job is left out.

        If the fold cannot be made for now, the entry is due again in a moment, as one whose queue
        is full. So those behind it fire meanwhile.
        """
        _, entry = await self._crons.entry(firing.group, firing.entry)
        if entry is None or firing.key is None:
            return 0
        job = entry.job

        def command(planned: Enqueue) -> Fire:
            return Fire([structs.replace(firing, job=job, plan=planned.plan)])

        name = f"{firing.group}/{firing.entry}"
        try:
            return await self._folding.fire(firing.key, job, now, job.reach, command)
        except (Unprocessable, TooLarge) as error:
            log.warning(f"the job of the cron entry {name} is left out: {error}")
            then = firing.then
        except ServiceUnavailable as error:
            log.warning(f"the cron entry {name} waits: {error}")
            later = self._steady.read()[0] + RETRY_MS
            then = later if firing.then is None else min(firing.then, later)
        # If the store is away, this says so.
        return await self._inbox.ask(Fire([structs.replace(firing, key=None, then=then)]))

    async def _retime(self, now: int) -> None:
        """Compute next times again if they were computed by a clock that was ahead of this one."""
        place = FIRST_PLACE
        while page := await self._crons.timed_ahead(now + SLIGHT_MS, place, MOST_FIRINGS):
            place = EntryPlace(page[-1].group, page[-1].entry)
            firings = []
            for cron in page:
                is_faulty = fault_of(cron.expression, cron.zone) is not None
                if not (is_faulty or _stays(cron, now)):
                    firings.append(self._firing(cron, now, None))
                await asyncio.sleep(0)
            if firings:
                await self._inbox.ask(Fire(firings))

    async def _survey(self, now: int) -> None:
        """Find the entries that are faulty, and bring back those that are so no longer."""
        place, count, named = FIRST_PLACE, 0, list[FaultyEntry]()
        while page := await self._crons.schedules(place, MOST_FIRINGS):
            place = EntryPlace(page[-1].group, page[-1].entry)
            back: list[Firing] = []
            for index, entry in enumerate(page, 1):
                reason = fault_of(entry.expression, entry.zone)
                if reason is not None:
                    count += 1
                    named.append(FaultyEntry(entry.group, entry.entry, reason))
                elif entry.next_at is None and self._comes(entry, now):
                    back.append(_brought_back(entry, now))
                if not index % AT_A_TIME:
                    await asyncio.sleep(0)
            named = named[:MOST_NAMED]
            if back:
                await self._inbox.ask(Fire(back))
        for faulty in named:
            if faulty not in self.faulty.named:
                fields = faulty._asdict()
                log.error(
                    "a cron entry cannot be evaluated and is set aside", extra={"fields": fields}
                )
        self.faulty = FaultyEntries(count, named)
        self._survey_at = self._clock.monotonic() + SURVEY_S if count else math.inf

    def _comes(self, entry: CronSchedule, now: int) -> bool:
        """True if there is a next time of an entry that has none in the store."""
        return parsed(entry.expression).after(now, self.zone_of(entry.zone)) is not None

    def _firing(self, cron: DueCron, now: int, key: int | None) -> Firing:
        """The firing of an entry, with its next time."""
        then = parsed(cron.expression).after(now, self.zone_of(cron.zone))
        return Firing(cron.group, cron.entry, cron.expression, cron.zone, cron.at, then, key)


def _stays(cron: DueCron, now: int) -> bool:
    """True if an entry keeps its next time although the clock was set back.

    Named times that have come do not come again, as in the repeated hour of autumn. Entries with a
    fixed interval go on. A next time far ahead came from a wrong clock.
    """
    return parsed(cron.expression).is_timed and cron.timed_at - now <= LARGE_MS


def _set_aside(cron: DueCron) -> Firing:
    """The firing that sets an entry aside: no job, and no next time."""
    return Firing(cron.group, cron.entry, cron.expression, cron.zone, cron.at, None, None)


def _brought_back(entry: CronSchedule, now: int) -> Firing:
    """The firing that makes an entry due at once: it makes up for what it has missed."""
    return Firing(entry.group, entry.entry, entry.expression, entry.zone, None, now, None)


def _first(due: Sequence[DueCron]) -> Sequence[DueCron]:
    """The first entries, as many as one tick takes by their bytes: at least one, however large."""
    size = 0
    for index, cron in enumerate(due):
        size += cron.size
        if size > MOST_BYTES and index:
            return due[:index]
    return due


def _local_zone() -> tzinfo:
    """The time zone of this machine; UTC if its settings are not valid."""
    from tzlocal import get_localzone  # only a cron without a zone of its own needs it

    try:
        return get_localzone()
    except (LookupError, ValueError, OSError) as error:
        log.warning(f"this machine's time zone is not clear, so UTC is used: {error}")
        return UTC


RUNNING = (Scheduler,)
