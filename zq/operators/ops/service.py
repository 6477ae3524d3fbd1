"""The verb about the server's state at one moment: is it the queue or the disk?"""

from collections.abc import Mapping
from typing import NamedTuple, Self

from zq.config import Settings
from zq.engine.engine import Engine
from zq.engine.subscribers.figures import RecentTimes
from zq.features.crons.engine import Scheduler
from zq.features.crons.model_expression import FaultyEntries
from zq.model.errors import InboxFull, WalFull
from zq.service.services import Services
from zq.store.api import Bloat


class StatusNow(NamedTuple):
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
    free_bytes: int | None
    set_aside: int
    """Damaged rows and logs that no operator has acknowledged."""
    settings: Settings
    """The settings of the server, with its limits."""
    reached: list[str]
    """The codes of the limits that are reached."""
    flags: Mapping[str, str]
    """The settings that are not at their defaults, in their written form."""
    faulty: FaultyEntries
    """The cron entries that are set aside."""
    bloat: Bloat | None
    """The old versions of rows, in a store that keeps some."""


class StatusReader:
    """Collects numbers that the engine counts anyway. It waits for no tick and makes no query."""

    @classmethod
    def of(cls, services: Services) -> Self:
        """The status of a server."""
        return cls(services.engine, services.since, services.settings)

    def __init__(self, engine: Engine, since: int, settings: Settings) -> None:
        """`since` is when the server was started, in milliseconds."""
        self._engine = engine
        self._since = since
        self._settings = settings
        self._flags = _flags(settings)

    def read(self) -> StatusNow:
        """The state of this moment."""
        engine, store, now = self._engine, self._engine.store, self._engine.clock.monotonic()
        return StatusNow(
            self._since,
            engine.pulse.ticks.read(now),
            engine.pulse.flushes.read(now),
            *engine.inbox.waiting,
            len(engine.streams),
            engine.streams.claiming,
            store.wal_bytes(),
            store.uncopied_bytes,
            store.database_bytes(),
            store.free_bytes(),
            store.quarantined.rows,
            self._settings,
            self._reached(),
            self._flags,
            engine[Scheduler].faulty,
            store.bloat(),
        )

    def _reached(self) -> list[str]:
        refusal = self._engine.admission.refusal()
        reached = [] if refusal is None else [refusal.code]
        if self._engine.store.wal_is_over and WalFull.code not in reached:
            reached.append(WalFull.code)
        if self._engine.lock.is_long:
            reached.append(self._engine.lock.refusal.code)
        if self._engine.inbox.waiting_jobs >= self._settings.max_inbox_jobs:
            reached.append(InboxFull.code)
        if self._engine.streams.free <= 0:
            reached.append("server_limit")
        return reached


def _flags(settings: Settings) -> dict[str, str]:
    """The settings that are not at their defaults: flags and how their values are written."""
    return {s.flag: s.rule.kind.show(value) for s, value in settings.rows() if value != s.default}
