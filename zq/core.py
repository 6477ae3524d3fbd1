"""The engine over its store, as settings say: what a server and an embedded app have in common."""

import socket
from pathlib import Path
from random import Random, SystemRandom

from zq.config import Settings
from zq.engine.engine import Engine, EngineOptions
from zq.model.clock import Clock, SystemClock
from zq.model.job import Backoff
from zq.model.log import Bounds
from zq.model.settling import Policy
from zq.store.history import HistoryOptions
from zq.store.store import Store, open_store


class Core:
    """One data directory's engine. `start` it in the event loop that it is to live in."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, rng: Random | None = None
    ) -> None:
        self.clock = clock or SystemClock()
        self.engine: Engine
        self._settings = settings
        self._rng = rng or SystemRandom()
        self._store: Store

    @property
    def returned(self) -> int:
        """How many jobs that were in flight at the last stop are ready again."""
        return self._store.returned

    async def start(self) -> None:
        """Recover the data and run. Leaves nothing open where it fails.

        Raises `DirectoryInUse`, `DatabaseTooNew`, `ForeignDatabase`, sqlite3.Error or OSError.
        """
        settings = self._settings
        self._store = await open_store(
            Path(settings.root_dir),
            policy=_policy(settings),
            random=self._rng,
            cache_bytes=settings.cache_size,
            read_timeout=settings.read_timeout / 1000,
            max_wal=settings.max_wal,
            history=_history(settings),
        )
        self.engine = Engine(self._store, self.clock, _engine_options(settings))
        self.engine.start()

    async def stop(self) -> None:
        """Commit what waits, checkpoint, close. After a failure of the disk, only let go of it."""
        failed = self.engine.failure.done()
        await self.engine.stop()
        if failed:
            await self._store.abandon()
        else:
            await self._store.close()


def _policy(settings: Settings) -> Policy:
    return Policy(
        retry_limit=settings.default_retry_limit,
        backoff=Backoff(
            settings.default_backoff_exponent,
            settings.default_backoff_base,
            settings.default_backoff_jitter,
        ),
        completed_ms=settings.default_completed_job_retention,
        dead_ms=settings.default_dead_job_retention,
    )


def _history(settings: Settings) -> HistoryOptions | None:
    if not settings.history:
        return None
    bounds = Bounds(settings.history, settings.history_max_records, settings.history_max_bytes)
    return HistoryOptions(settings.device or socket.gethostname(), bounds)


def _engine_options(settings: Settings) -> EngineOptions:
    return EngineOptions(
        global_in_flight_limit=settings.global_in_flight_limit,
        max_inbox_jobs=settings.max_inbox_jobs,
        disk_reserve=settings.disk_reserve,
        reaper_interval=settings.reaper_check_interval / 1000,
        filter_timeout=settings.filter_timeout / 1000,
        read_timeout=settings.read_timeout / 1000,
        max_result=settings.max_result,
        max_sweeps=settings.max_sweeps,
        recording=bool(settings.history),
        durable=settings.default_commit_mode == "fsync",
        durable_enqueues=(settings.enqueue_commit_mode or settings.default_commit_mode) == "fsync",
    )
