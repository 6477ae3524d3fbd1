"""An embedded engine: a thread with its own event loop, and a data directory."""

import asyncio
import logging
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from zq.client.core import keep_loggers
from zq.client.errors import BackendError, InvalidOption, Unavailable
from zq.config import Settings
from zq.instance import Instance, database_of
from zq.model.clock import Clock, Timer
from zq.service.services import Services
from zq.setting import ConfigError
from zq.store.errors import DatabaseTooNew, DirectoryInUse, FilesMoved, ForeignDatabase

T = TypeVar("T")


class DirectoryTaken(Unavailable):
    """Another process has the data directory."""

    code = "directory_taken"


class EmbeddedEngine:
    """The engine starts with the first use and ends with `close`. The next use starts it again.

    With a `directory` of None, the directory is temporary and is removed with the engine.
    """

    def __init__(
        self,
        directory: Path | None,
        clock: Clock | None = None,
        rng: Random | None = None,
        *,
        standby: bool = False,
    ) -> None:
        """With `standby`, callers wait while another process has the directory."""
        self.standby = standby
        self._directory = directory
        self._clock = clock
        self._rng = rng
        self._lock = threading.Lock()
        self._resident: _Resident | None = None
        self._at_exit: weakref.finalize[Any, type[EmbeddedEngine]] | None = None

    @property
    def directory(self) -> Path:
        """The data directory, once the engine is started."""
        return self._running().directory

    @property
    def url(self) -> str:
        """The address that names the directory."""
        return f"sqlite://{':memory:' if self._directory is None else self._directory}"

    @property
    def is_in_memory(self) -> bool:
        """True if the jobs end with the engine, and no other process can have them."""
        return self._directory is None

    @property
    def is_running(self) -> bool:
        """True if the engine is started."""
        return self._resident is not None

    def submit(self, verb: Coroutine[Any, Any, T]) -> "Future[T]":
        """Run a coroutine in the engine's event loop. Raises the errors of `services`."""
        try:
            return asyncio.run_coroutine_threadsafe(verb, self._running().loop)
        except BaseException:
            verb.close()
            raise

    def services(self) -> Services:
        """The services of the engine. If it does not run, it is started.

        Raises `DirectoryTaken` if another process owns the directory, and `BackendError` if the
        directory cannot be used.
        """
        return self._running().core.services

    def close(self) -> None:
        """Commit, and release the directory. It may be called twice, and from any thread."""
        with self._lock:
            resident, self._resident = self._resident, None
        if resident is not None:
            self._end(resident)

    def _running(self) -> "_Resident":
        with self._lock:
            if self._resident is not None and self._resident.has_lost_its_files:
                lost, self._resident = self._resident, None
                self._end(lost)
            if self._resident is None:
                self._resident = _Resident(self._directory, self._clock, self._rng)
                # At the interpreter's end, and before its temporary directory is removed: the
                # latest is called first. The class lives until then.
                self._at_exit = weakref.finalize(EmbeddedEngine, self._resident.end)
            elif self._resident.pid != os.getpid():
                raise Unavailable(
                    "an embedded queue does not survive a fork: open it in the child process"
                    " (and close it in the parent first), or run `zq serve` for both"
                )
            return self._resident

    def _end(self, resident: "_Resident") -> None:
        """End a run of the engine, and leave nothing of it."""
        if self._at_exit is not None:
            self._at_exit.detach()
        resident.end()


class _Resident:
    """One run of the engine."""

    def __init__(self, directory: Path | None, clock: Clock | None, rng: Random | None) -> None:
        keep_loggers()
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._private: weakref.finalize[Any, _Resident] | None = None
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix="zq-"))
            self._private = weakref.finalize(self, _remove, directory, self.pid)
        self.directory = directory
        self.core = Instance(_settings(directory), clock=clock, rng=rng)
        self._thread = threading.Thread(target=self._live, name="zq-engine", daemon=True)
        self._thread.start()
        try:
            self._run(self.core.start())
        except BaseException as error:
            self._leave()
            raise _why(directory, error) from error

    @property
    def has_lost_its_files(self) -> bool:
        """True if its files were moved or replaced: another run opens what is there now.

        After a failed flush there is no other run in this process. What the system keeps in memory
        would be read as stored, and a second flush would say that all is well.
        """
        failure = self.core.engine.failure
        return (
            self.pid == os.getpid() and failure.done() and isinstance(failure.result(), FilesMoved)
        )

    def end(self) -> None:
        """Return the jobs of streams, then stop the engine."""
        if self.pid != os.getpid():
            return  # The engine belongs to the parent.
        try:
            self._run(self._stop())
        finally:
            self._leave()

    async def _stop(self) -> None:
        self.core.engine.streams.stop()
        self.core.engine.let_go()
        await self.core.stop()

    def _run(self, step: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(step, self.loop).result()

    def _leave(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        if self._private is not None:
            self._private()

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        waiting = asyncio.all_tasks(self.loop)
        for task in waiting:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def _remove(directory: Path, owner: int) -> None:
    """Remove a temporary directory, unless this process is a fork of its owner."""
    if owner == os.getpid():
        shutil.rmtree(directory, ignore_errors=True)


def directory_of(path: str, must_exist: bool = False) -> Path | None:
    """The data directory in the path of a ``sqlite:`` address; None for a temporary one.

    It is a directory, as for `zq serve --root-dir`, so each can continue with the other's jobs.
    Raises `InvalidOption`.
    """
    if path in (":memory:", "/:memory:"):
        return None
    directory = Path(path)
    if not path or directory.is_file():
        raise InvalidOption(
            f"{path!r} is not a directory: write sqlite:///var/lib/zq for the directory that holds"
            " the database (it is made if need be), or sqlite://:memory:"
        )
    if must_exist and not database_of(directory).exists():
        raise InvalidOption(
            f"{path} holds no database: name a directory that `zq serve --root-dir` or zq.App has"
            " made"
        )
    return directory


def _settings(directory: Path) -> Settings:
    try:
        # Nobody else waits while a program stores much in one go.
        given = {"root_dir": str(directory), "max_bulk_bytes": str(2**52)}
        return Settings.load(given, os.environ)
    except ConfigError as error:
        raise InvalidOption(str(error)) from error


def _why(directory: Path, error: BaseException) -> BaseException:
    if isinstance(error, DirectoryInUse):
        return DirectoryTaken(f"{error}. zq.App(url, standby=True) waits until it is free")
    if isinstance(error, Exception):
        told = isinstance(error, DatabaseTooNew | ForeignDatabase)
        return BackendError(str(error) if told else f"{directory} cannot be used: {error}")
    return error


log = logging.getLogger("zq.embedded")

LOOK_EVERY_S = 0.2
"""How often a standby checks whether the directory is free.

The kernel frees the directory however its owner ends, so no lock has to expire first.
"""


async def start(home: EmbeddedEngine, *, blocks: bool) -> None:
    """Start the engine. A standby waits until it can. With `blocks` the thread is blocked."""
    waits = False
    while True:
        try:
            if blocks:
                home.services()
            else:
                # Starting the engine may take a while.
                await asyncio.to_thread(home.services)
        except DirectoryTaken as taken:
            if not home.standby:
                raise
            if not waits:
                log.info("standing by: %s", taken)
            waits = True
        else:
            if waits:
                log.info("%s is free: going on with its jobs", home.directory)
            return
        if blocks:
            time.sleep(LOOK_EVERY_S)  # noqa: ASYNC251 - there is no event loop to hold up
        else:
            await asyncio.sleep(LOOK_EVERY_S)


class TravelClock:
    """The machine's clock, moved forward by the sum of all calls of `advance`.

    `advance` fires at once the timers that fall due, in their order. The others fire that much
    sooner.
    """

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._timers: set[_Timer] = set()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_ms / 1000

    def elapsed_ms(self) -> int:
        return round(self.monotonic() * 1000)

    @property
    def boot(self) -> None:
        """The boot under which no steady time goes on: this clock's time is gone with it."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return _Timer(self._timers, self.monotonic() + seconds, seconds, callback)

    def advance(self, ms: int) -> None:
        """Move the clock forward by `ms` milliseconds. Call it in the event loop's thread."""
        self._ahead_ms += ms
        now = self.monotonic()
        for timer in sorted(self._timers, key=lambda timer: timer.due):
            if timer.due <= now:
                timer.fire()
            else:
                timer.start(timer.due - now)


class _Timer:
    """One timer that waits."""

    def __init__(
        self, waiting: "set[_Timer]", due: float, seconds: float, callback: Callable[[], object]
    ) -> None:
        self.due = due
        self._waiting = waiting
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        waiting.add(self)
        self.start(seconds)

    def start(self, seconds: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_later(seconds, self.fire)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._waiting.discard(self)

    def fire(self) -> None:
        if self in self._waiting:
            self.cancel()
            self._callback()
