"""The engine and services of one data directory, for a server or an embedded app."""

import asyncio
import logging
import socket
import time
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import IO

from tzlocal import get_localzone

from zq.config import Settings
from zq.doors.queue_ti.service import Users
from zq.doors.topics.service import Topics
from zq.doors.topics.service_queues import QueueTopics
from zq.doors.topics.service_routers import Routers
from zq.doors.topics.service_watches import Watches
from zq.engine.engine import Engine, EngineOptions
from zq.engine.jq.filter import JqFilter
from zq.engine.loop import Durability
from zq.features.archive.service import Replays
from zq.features.archive.service_cleaning import Cleaning
from zq.features.archive.settings import ArchiveSettings
from zq.features.audit.service import Audit
from zq.features.batches.engine import Folding
from zq.features.budgets.service import Budgets
from zq.features.crons.errors import InvalidSchedule
from zq.features.crons.model_schedule import ChoreSchedule
from zq.features.crons.service import Crons
from zq.features.diagnosis.service_judge import QueueJudge
from zq.features.diagnosis.service_lookback import Lookback
from zq.features.diagnosis.service_noted import Noted
from zq.features.diagnosis.service_stuck import StuckWork
from zq.features.failures.service import Failures
from zq.features.history.service import History
from zq.features.schemas.service import PayloadChecks, Schemas
from zq.features.search.service_suggestions import Suggestions
from zq.features.sweeps.model import BY_SCHEDULE
from zq.features.sweeps.service import Sweeps
from zq.features.sweeps.service_ended import EndedSweeps
from zq.features.trends.service import Trends
from zq.features.trends.service_marks import Marks
from zq.features.trends.service_types import TypeTrends
from zq.features.waits.service import Waits
from zq.model.clock import Clock, SystemClock
from zq.model.ids import codec_of
from zq.model.job import BackoffRule, Retention
from zq.model.log import Bounds, HistoryOptions
from zq.model.settings import QueueSettings
from zq.model.settling import Policy
from zq.operators.ops.service import ServerLimits, StatusBoard
from zq.operators.page.service import Lookout
from zq.service.admin import Admin
from zq.service.jobs import Admission, Jobs
from zq.service.listing import Listing
from zq.service.maintenance import Maintenance
from zq.service.queues import QueueCounts, Queues
from zq.service.work import Work
from zq.services import Services
from zq.setting import ConfigError
from zq.store.api import Store
from zq.store.errors import DamagedDatabase, StoreDamaged
from zq.store.sqlite import check
from zq.store.sqlite import salvage as salvaging
from zq.store.sqlite.files import FILE_NAME
from zq.store.sqlite.replace import replace_damaged
from zq.store.sqlite.restore import Progress, restoring
from zq.store.sqlite.salvage import Salvaged
from zq.store.sqlite.store import open_store
from zq.tick.runner import make_ticks
from zq.wire.archive import InvalidArchive, database_in

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
        self._folding: Folding
        self._store: Store

    @property
    def returned(self) -> int:
        """How many jobs that were in flight at the last stop are ready again."""
        return self._store.returned

    async def start(self) -> None:
        """Recover the data and run. If this fails, nothing stays open.

        Raises `DirectoryInUse`, `DatabaseTooNew`, `ForeignDatabase`, `RestoreUnfinished`,
        `StoreError` or OSError.
        """
        settings = self._settings
        _check_schedule(settings[ArchiveSettings].queue_ti_delete_reaper_schedule)
        history = _history(settings)
        directory = Path(settings.root_dir)
        opening = partial(
            open_store,
            directory,
            make_ticks(
                *(_policy(settings), self._rng, history and history.device),
                settings.max_budgets,
            ),
            cache_bytes=settings.cache_size,
            read_timeout=settings.read_timeout / 1000,
            max_wal=settings.max_wal,
            history=history and history.bounds,
            clock=self.clock,
        )
        try:
            self._store = await opening()
        except StoreDamaged:
            if settings.on_damage != "salvage":
                raise
            await asyncio.to_thread(replace_damaged, directory, self.clock.now_ms())
            self._store = await opening()
        self._filter = JqFilter(timeout=settings.filter_timeout / 1000)
        self.engine = Engine(self._store, self.clock, _engine_options(settings))
        self._folding = Folding(
            *(self._store.reads, self.engine.inbox, self.clock),
            timeout=settings.filter_timeout / 1000,
            max_payload=settings.max_payload,
        )
        self.services = self._services()
        self.engine.start()
        await self.services.schemas.start()
        await self.services.cleaning.start()

    async def stop(self) -> None:
        """Run waiting commands, checkpoint, close. After a failure of the disk, only close."""
        await self.services.cleaning.stop()
        await self.services.sweeps.stop()
        await self.services.crons.stop()
        await self._folding.close()
        await self.engine.stop()
        await self._filter.close()
        # The disk may have failed before, or by the last commands.
        if self.engine.failure.done():
            await self._store.abandon()
        else:
            await self._store.close()

    def _services(self) -> Services:
        settings, store, clock, engine = self._settings, self._store, self.clock, self.engine
        ids = codec_of(store.id_suffix, store.former_suffixes)
        admission = Admission(
            *(store, clock, engine.inbox), settings.disk_reserve, settings.max_bulk_bytes
        )
        counts = QueueCounts(store, clock)
        sweeps = Sweeps(
            *(store, clock, counts, self._filter),
            *(engine.inbox, engine.mint, settings.max_sweeps),
        )
        checks = PayloadChecks(engine.turns)
        schemas = Schemas(store, engine.inbox, checks)
        jobs = Jobs(
            *(store, clock, ids, engine.inbox, engine.waiters, admission),
            *(engine.mint, self._folding, checks),
        )
        topics = Topics(
            *(store, clock, engine.inbox, engine.topics, admission),
            *(engine.mint, checks),
        )
        work = Work(
            *(store, clock, ids, engine.inbox, engine.streams, engine.signs, engine.events),
            max_result=settings.max_result,
        )
        engine.scheduler.admit = admission.admit
        engine.scheduler.folding = self._folding
        inherited = _inherited(_policy(settings))
        queues = Queues(store, clock, engine.inbox, counts, engine.flows, inherited)
        trends = Trends(store, clock, engine.trends)
        type_trends = TypeTrends(store, clock, engine.trends, engine.turns)
        marks = Marks(store, clock, engine.inbox)
        stuck = StuckWork(store, clock, trends, type_trends, engine.streams)
        noted, lookback = Noted(store, clock, stuck), Lookback(clock, trends, marks)
        admin = Admin(store, clock, ids, engine, admission, _durability(settings), schemas)
        judge = QueueJudge(clock, admin, trends, lookback)
        status = StatusBoard(store, clock, engine, admission, _limits(settings), _flags(settings))
        failures = Failures(store, clock, marks, engine.turns)
        return Services(
            jobs,
            Listing(store, clock, counts, self._filter, settings.read_timeout / 1000),
            sweeps,
            EndedSweeps(store, sweeps),
            Replays(store, clock, jobs, engine.tallies.count_replayed),
            schemas,
            Waits(store, clock, ids, engine.streams, engine.openings, queues),
            work,
            queues,
            Budgets(store, clock, ids, engine.inbox, sweeps),
            failures,
            History(store, ids, engine.history),
            Audit(store, engine.inbox),
            Crons(store, clock, engine.inbox, engine.scheduler, self._folding),
            Cleaning(
                *(store, clock, engine.inbox, partial(sweeps.delete, author=BY_SCHEDULE)),
                *(
                    engine.scheduler.zone_of(None),
                    settings[ArchiveSettings].queue_ti_delete_reaper_schedule,
                ),
            ),
            topics,
            QueueTopics(store, clock, engine.inbox, topics, work, engine.mint),
            Routers(store, engine.inbox),
            Watches(store, clock, engine.topics),
            Users(store, clock, engine.inbox),
            engine.events,
            engine.viewers,
            engine.tallies,
            admin,
            status,
            trends,
            type_trends,
            marks,
            stuck,
            noted,
            judge,
            lookback,
            Lookout(clock, queues, admin, status, trends, engine.changes, noted, judge),
            Maintenance(store, engine, settings.disk_reserve),
            Suggestions(store, clock, queues, failures, admin, engine.turns),
            engine.turns,
            clock,
            ids,
        )


def database_of(directory: Path) -> Path:
    """The path of a data directory's database, whether it exists or not."""
    return directory / FILE_NAME


def examine(directory: Path) -> check.Report:
    """Check a directory without a server for damage. Raises `DirectoryInUse` or `OSError`."""
    return check.examine(directory)


def restore(archive: IO[bytes], directory: Path, progress: Progress) -> None:
    """Make an empty directory a data directory with the contents of a backup, or leave it as it is.

    Jobs that were in flight are ready. The history has another epoch. New jobs get ids that neither
    the original server nor another restore of the backup gives. Raises the errors of
    `zq.store.sqlite.restore.restoring`.
    """
    # Read the archive to its end first: only then it is known to be complete.
    try:
        with restoring(directory) as write, database_in(archive) as (content, size):
            write(content, size, progress)
    except InvalidArchive as error:
        raise DamagedDatabase(str(error)) from None


def salvage(old: Path, new: Path, progress: Progress) -> Salvaged:
    """Save what can be read of a damaged directory. See `zq.store.sqlite.salvage.salvage`."""
    return salvaging.salvage(old, new, time.time_ns() // 1_000_000, progress)


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


def _check_schedule(text: str) -> None:
    try:
        ChoreSchedule(text or "@daily")
    except InvalidSchedule as error:
        raise ConfigError(f"--queue-ti-delete-reaper-schedule: {error}") from None


def server_name(settings: Settings) -> str:
    """How the server is called where several are told apart."""
    return settings.device or socket.gethostname()


def _history(settings: Settings) -> HistoryOptions | None:
    if not settings.history:
        return None
    bounds = Bounds(settings.history, settings.history_max_records, settings.history_max_bytes)
    return HistoryOptions(server_name(settings), bounds)


def _limits(settings: Settings) -> ServerLimits:
    return ServerLimits(
        settings.max_inbox_jobs,
        settings.global_in_flight_limit,
        settings.max_wal,
        settings.disk_reserve,
    )


def _flags(settings: Settings) -> dict[str, str]:
    """The settings that are not at their defaults: flags and how their values are written."""
    return {s.flag: s.rule.kind.show(value) for s, value in settings.rows() if value != s.default}


def _durability(settings: Settings) -> Durability:
    changes = settings.default_commit_mode
    enqueues = settings.enqueue_commit_mode or changes
    return Durability(changes == "fsync", enqueues == "fsync")


def _engine_options(settings: Settings) -> EngineOptions:
    return EngineOptions(
        global_in_flight_limit=settings.global_in_flight_limit,
        max_inbox_jobs=settings.max_inbox_jobs,
        reaper_interval=settings.reaper_check_interval / 1000,
        recording=bool(settings.history),
        durability=_durability(settings),
        zone=_local_zone(),
    )


def _local_zone() -> tzinfo:
    """The time zone of this machine; UTC if its settings are not valid."""
    try:
        return get_localzone()
    except (LookupError, ValueError, OSError) as error:
        log.warning(f"this machine's time zone is not clear, so UTC is used: {error}")
        return UTC
