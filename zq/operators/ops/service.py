"""The verb about the server's state at one moment: is it the queue or the disk?"""

from collections.abc import Mapping
from typing import NamedTuple

from zq.engine.engine import Engine
from zq.engine.subscribers.recent import RecentTimes
from zq.features.crons.model_faults import FaultyEntries
from zq.model.clock import Clock
from zq.model.errors import InboxFull, WalFull
from zq.model.storage_errors import DatabaseLocked
from zq.service.jobs import Admission
from zq.store.api import Store


class ServerLimits(NamedTuple):
    """The limits in the settings. Sizes are in bytes; an `in_flight` of 0 means no limit."""

    inbox_jobs: int
    in_flight: int
    log_bytes: int
    disk_reserve: int


class StatusLook(NamedTuple):
    """The state of a server. Sizes are in bytes, `since` is in milliseconds."""

    since: int
    ticks: RecentTimes
    flushes: RecentTimes
    inbox_jobs: int
    inbox_changes: int
    streams: int
    claims: int
    log_bytes: int
    uncopied_bytes: int
    database_bytes: int
    free_bytes: int
    set_aside: int
    """Damaged rows and logs that no operator has acknowledged."""
    limits: ServerLimits
    reached: list[str]
    """The codes of the limits that are reached."""
    flags: Mapping[str, str]
    """The settings that are not at their defaults, in their written form."""
    faulty: FaultyEntries
    """The cron entries that are set aside."""


class StatusBoard:
    """Collects numbers that the engine counts anyway. It waits for no tick and makes no query."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        engine: Engine,
        admission: Admission,
        limits: ServerLimits,
        flags: Mapping[str, str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._engine = engine
        self._admission = admission
        self._limits = limits
        self._flags = flags
        self._since = clock.now_ms()

    def look(self) -> StatusLook:
        """The state of this moment."""
        engine, store, now = self._engine, self._store, self._clock.monotonic()
        return StatusLook(
            self._since,
            engine.pulse.ticks.look(now),
            engine.pulse.flushes.look(now),
            *engine.inbox.waiting,
            len(engine.streams),
            engine.streams.claiming,
            store.wal_bytes(),
            store.uncopied_bytes,
            store.database_bytes(),
            store.free_bytes(),
            store.quarantined.rows,
            self._limits,
            self._reached(),
            self._flags,
            engine.scheduler.faulty,
        )

    def _reached(self) -> list[str]:
        refusal = self._admission.refusal()
        reached = [] if refusal is None else [refusal.code]
        if self._store.wal_is_over and WalFull.code not in reached:
            reached.append(WalFull.code)
        if self._engine.lock.is_long:
            reached.append(DatabaseLocked.code)
        if self._engine.inbox.waiting_jobs >= self._limits.inbox_jobs:
            reached.append(InboxFull.code)
        if self._engine.streams.free <= 0:
            reached.append("server_limit")
        return reached
