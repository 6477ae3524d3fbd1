"""The schedule by which expired jobs are deleted before their retention is over."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import tzinfo
from functools import partial
from typing import Self

from zq.engine.inbox import Inbox
from zq.features.archive.model import ChoreSchedule
from zq.features.archive.settings import ArchiveSettings
from zq.features.crons.engine import Scheduler
from zq.features.crons.model import InvalidSchedule
from zq.features.sweeps.model import BY_SCHEDULE
from zq.features.sweeps.service_running import Sweeps
from zq.model.clock import SLIGHT_MS, Clock, Timer
from zq.model.commands import WriteNote
from zq.model.errors import ZqError
from zq.model.filters import Filter
from zq.model.lifecycle import Status
from zq.service.services import RunningService, Services
from zq.store.api import Store

log = logging.getLogger(__name__)

NOTE = "delete_expired"
"""The name under which the schedule is stored."""

NAP_MS = 60_000
"""The wall clock is read this often, since it may be set."""


class Cleaning(RunningService):
    """Deletes expired jobs when their time comes. A stored schedule comes before the configured."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """Cleaning by the schedule of the settings."""
        configured = services.settings[ArchiveSettings].queue_ti_delete_reaper_schedule
        return cls(
            services.store,
            services.clock,
            services.engine.inbox,
            partial(services[Sweeps].delete, author=BY_SCHEDULE),
            partial(services.engine[Scheduler].zone_of, None),
            configured,
        )

    def __init__(
        self,
        store: Store,
        clock: Clock,
        inbox: Inbox,
        delete: Callable[[Filter], Awaitable[int]],
        zone: Callable[[], tzinfo],
        configured: str,
    ) -> None:
        """`zone` gives the zone of schedules without one. An empty schedule deletes nothing."""
        self.schedule = configured
        self._reads = store.reads
        self._clock = clock
        self._inbox = inbox
        self._delete = delete
        self._zone = zone
        self._next: int | None = None
        self._seen = 0
        """The wall time at the last look."""
        self._timer: Timer | None = None
        self._run: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go by the stored schedule, if there is one."""
        stored = await self._reads.note(NOTE)
        if stored is not None:
            self.schedule = stored
        try:
            self._plan()
        except InvalidSchedule as error:
            log.error(f"expired jobs are not deleted: {error}")

    async def stop(self) -> None:
        """End. Nothing is deleted any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._run is not None:
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    async def change(self, schedule: str) -> None:
        """Store another schedule, and go by it. Raises `InvalidSchedule`, and changes nothing."""
        if schedule:
            ChoreSchedule(schedule)
        await self._inbox.ask(WriteNote(NOTE, schedule))
        self.schedule = schedule
        self._plan()

    def _plan(self) -> None:
        """Wait for the next time from now on."""
        if self._timer is not None:
            self._timer.cancel()
        now = self._clock.now_ms()
        schedule = ChoreSchedule(self.schedule) if self.schedule else None
        self._next = None if schedule is None else schedule.after(now, self._zone())
        if self._next is not None:
            self._wait(now)

    def _wait(self, now: int) -> None:
        assert self._next is not None
        self._seen = now
        rest = min(max(self._next - now, 0), NAP_MS)
        self._timer = self._clock.call_later(rest / 1000, self._wake)

    def _wake(self) -> None:
        assert self._next is not None
        now = self._clock.now_ms()
        if self._seen - now > SLIGHT_MS:
            # The clock was set back: the next time may be one of a clock that was years ahead.
            self._plan()
            return
        if now < self._next:
            self._wait(now)
            return
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(self._clean())
        self._plan()

    async def _clean(self) -> None:
        try:
            deleted = await self._delete(Filter(statuses=(Status.EXPIRED,)))
        except ZqError as error:
            log.warning(f"expired jobs were not deleted, the next time comes: {error}")
        else:
            log.info("expired jobs deleted", extra={"fields": {"jobs": deleted}})


RUNNING = (Cleaning,)
