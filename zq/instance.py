"""The engine and services of one data directory, for a server or an embedded app.

Most starts neither check, restore nor salvage, so what does it is imported when it is asked for.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random, SystemRandom
from typing import IO, TYPE_CHECKING, Any

from zq.config import Settings
from zq.engine.engine import Engine
from zq.engine.jq.filter import JqFilter
from zq.model.clock import Clock, SystemClock
from zq.model.job import BackoffRule, Retention
from zq.model.log import Bounds, HistoryOptions
from zq.model.settings import QueueSettings
from zq.model.settling import Policy
from zq.service.services import Services
from zq.setting import ConfigError
from zq.store.api import Store
from zq.store.errors import DamagedDatabase, StoreDamaged
from zq.store.sqlite.files import FILE_NAME
from zq.store.sqlite.store import open_store
from zq.tick.runner import make_ticks

if TYPE_CHECKING:
    from zq.store.moving import Moved
    from zq.store.moving import Progress as MoveProgress
    from zq.store.sqlite.check import Report
    from zq.store.sqlite.restore import Progress
    from zq.store.sqlite.salvage import Salvaged

log = logging.getLogger(__name__)


class Instance:
    """The engine of one data directory. `start` it in the event loop that it runs in."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, rng: Random | None = None
    ) -> None:
        self.clock = clock or SystemClock()
        self.engine: Engine
        self.services: Services
        self._settings = settings
        self._rng = rng or SystemRandom()
        self._filter: JqFilter
        self._store: Store

    @property
    def returned(self) -> int:
        """How many jobs that were in flight at the last stop are ready again."""
        return self._store.at_start.returned

    async def start(self) -> None:
        """Recover the data and run. If this fails, nothing stays open.

        Raises `DirectoryInUse`, `DatabaseTooNew`, `ForeignDatabase`, `RestoreUnfinished`,
        `StoreError` or OSError.
        """
        settings = self._settings
        self._store = await self._opened(settings)
        self._filter = JqFilter(timeout=settings.filter_timeout / 1000)
        self.engine = Engine(self._store, self.clock, settings)
        self.services = Services(self.engine, self._filter, _inherited(_policy(settings)))
        self.engine.start()
        try:
            await self.services.start()
        except BaseException:
            await self.stop()
            raise

    async def _opened(self, settings: Settings) -> Store:
        """Open the store that the settings name: the one place that knows which there are."""
        history = _history(settings)
        ticks = make_ticks(
            _policy(settings),
            self._rng,
            {"device": history and history.device, "max_budgets": settings.max_budgets},
        )
        bounds = history and history.bounds
        read_timeout, off_counts = settings.read_timeout / 1000, settings.time_off == "counts"
        if settings.store is not None:
            open_database = _postgres(settings.store)
            return await open_database(
                *(settings.store, ticks),
                read_timeout=read_timeout,
                history=bounds,
                clock=self.clock,
                off_counts=off_counts,
                servers=settings.servers,
                name=server_name(settings),
            )
        if settings.servers > 1:
            raise ConfigError("--servers: only a database is shared by servers: see --store")
        directory = Path(settings.root_dir)
        opening = partial(
            open_store,
            directory,
            ticks,
            cache_bytes=settings.cache_size,
            read_timeout=read_timeout,
            max_wal=settings.max_wal,
            page_bytes=settings.page_size,
            disk_reserve=settings.disk_reserve,
            history=bounds,
            clock=self.clock,
            off_counts=off_counts,
        )
        try:
            return await opening()
        except StoreDamaged:
            if settings.on_damage != "salvage":
                raise
            from zq.store.sqlite.replace import replace_damaged

            await asyncio.to_thread(replace_damaged, directory, self.clock.now_ms())
            return await opening()

    async def stop(self) -> None:
        """Run waiting commands, checkpoint, close. After a failure of the disk, only close."""
        await self.services.stop()
        await self.engine.stop()
        await self._filter.close()
        # The disk may have failed before, or by the last commands.
        if self.engine.failure.done():
            await self._store.abandon()
        else:
            await self._store.close()


def _postgres(address: str) -> Callable[..., Awaitable[Store]]:
    """How a database of PostgreSQL is opened. Raises `ConfigError`."""
    if not is_address(address):
        raise ConfigError("--store: give the address of a database, postgresql://…")
    opening: Callable[..., Awaitable[Store]] = _of_postgres("zq.store.postgres.store").open_store
    return opening


def _of_postgres(module: str) -> Any:
    """A module of the store on PostgreSQL. Servers over a directory need no library for it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs the library psycopg: pip install 'zq-queue[postgres]' ({error})"
        ) from None


def place_of(settings: Settings) -> str:
    """Where the data is, for people: never with a password."""
    if settings.store is None:
        return str(settings.root_dir.absolute())
    return shown_address(settings.store)


def shown_address(address: str) -> str:
    """The address of a database without the passwords in it; a path as it is.

    Raises `ConfigError` without the library for it.
    """
    if not is_address(address):
        return address
    shown: str = _of_postgres("zq.store.postgres.connection").shown(address)
    return shown


def database_of(directory: Path) -> Path:
    """The path of a data directory's database, whether it exists or not."""
    return directory / FILE_NAME


def examine(directory: Path) -> Report:
    """Check a directory without a server for damage. Raises `DirectoryInUse` or `OSError`."""
    from zq.store.sqlite import check

    return check.examine(directory)


def restore(archive: IO[bytes], directory: Path, progress: Progress) -> None:
    """Give a directory without a database the contents of a backup, or leave it as it is.

    Jobs that were in flight are ready. The history has another epoch. New jobs get ids that neither
    the original server nor another restore of the backup gives. Raises the errors of
    `zq.store.sqlite.restore.restoring`.
    """
    from zq.store.sqlite.restore import restoring
    from zq.wire.archive import InvalidArchive, database_in

    # Read the archive to its end first: only then it is known to be complete.
    try:
        with restoring(directory) as write, database_in(archive) as (content, size):
            write(content, size, progress)
    except InvalidArchive as error:
        raise DamagedDatabase(str(error)) from None


def salvage(old: Path, new: Path, progress: Progress) -> Salvaged:
    """Save what can be read of a damaged directory. See `zq.store.sqlite.salvage.salvage`."""
    from zq.store.sqlite.salvage import salvage

    return salvage(old, new, time.time_ns() // 1_000_000, progress)


def move(source: str, target: str, progress: MoveProgress) -> Moved:
    """Move everything between a data directory and a database of PostgreSQL, either way.

    Each is a path, or an address `postgresql://…`. See `zq.store.moving.move`. Raises `ConfigError`
    if they are of one kind, or what `source` and `target` of the stores' `moving` raise.
    """
    from zq.store import moving

    if is_address(source) == is_address(target):
        raise ConfigError(
            "one of both is a data directory, and the other one the address of a database,"
            " postgresql://…; `zq backup` and `zq restore` copy a directory, pg_dump a database"
        )
    with (
        _moving_of(source).source(source) as reading,
        _moving_of(target).target(target) as writing,
    ):
        return moving.move(reading, writing, progress)


def _moving_of(place: str) -> Any:
    """The module that reads or fills a place."""
    if is_address(place):
        return _of_postgres("zq.store.postgres.moving")
    return import_module("zq.store.sqlite.moving")


def is_address(place: str) -> bool:
    """True if this is the address of a database of PostgreSQL."""
    return place.startswith(("postgresql://", "postgres://"))


def _policy(settings: Settings) -> Policy:
    return Policy(
        retry_limit=settings.default_retry_limit,
        backoff=BackoffRule(
            settings.default_backoff_exponent,
            settings.default_backoff_base,
            settings.default_backoff_jitter,
        ),
        completed_ms=settings.default_completed_job_retention,
        dead_ms=settings.default_dead_job_retention,
    )


def _inherited(policy: Policy) -> QueueSettings:
    """The server's policy as the settings that a queue has without its own."""
    return QueueSettings(
        retry_limit=policy.retry_limit,
        backoff=policy.backoff,
        retention=Retention(policy.completed_ms, policy.dead_ms),
    )


def server_name(settings: Settings) -> str:
    """How the server is called where several are told apart."""
    return settings.device or socket.gethostname()


def _history(settings: Settings) -> HistoryOptions | None:
    if not settings.history:
        return None
    bounds = Bounds(settings.history, settings.history_max_records, settings.history_max_bytes)
    return HistoryOptions(server_name(settings), bounds)
