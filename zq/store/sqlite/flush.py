"""Brings the log to the disk without blocking the event loop.

A commit writes to the log and returns. The kernel is asked to flush it, and reports the end through
a descriptor that the loop watches. No thread takes part, so the interpreter's lock does not change
hands. If the kernel cannot do this, a thread flushes instead.

Readers see a commit a little before its flush has landed. Everything that leaves the server waits
for that (`FlushGate`), so no power cut takes back what a client was told. This one rule holds for
all reads. If nobody waits for commits (buffered mode), reads do not wait either.

What was flushed is of use only in a file that still has its name: `OpenFiles` looks.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from zq.model.errors import DiskFailed
from zq.store.errors import FilesMoved
from zq.store.sqlite.files import FILE_NAME, LOCK_NAME, SHM_NAME, WAL_NAME

log = logging.getLogger(__name__)

_NEGATIVE = 2**63
"""caio returns the kernel's negative numbers as unsigned ones."""


_SPARE: dict[str, list[Any]] = {}
"""Contexts without a file, by the name of their kind.

The kernel takes about 35 ms to release one, and blocks the interpreter meanwhile. A program that
often opens and closes engines, such as a suite of tests, uses the same context again.
"""
# A fork does not inherit the kernel's side of a context.
os.register_at_fork(after_in_child=_SPARE.clear)


class Flush(Protocol):
    """Flushes one file. At most one flush is under way at a time."""

    name: str
    """The name in the answer of `/health`."""

    def begin(self) -> asyncio.Future[None]:
        """Flush what has been written so far. The future raises OSError if the disk fails."""
        ...

    def close(self) -> None:
        """Close the file. No flush may be under way."""
        ...


class KernelFlush:
    """Asynchronous input and output of the kernel, through one of caio's modules."""

    def __init__(self, name: str, module: ModuleType, descriptor: int) -> None:
        """Raises if the kernel does not support it. The type of the error is caio's choice."""
        self.name = name
        self._operation: Any = module.Operation
        self._context: Any = _context(name, module)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._landed: asyncio.Future[None] = self._loop.create_future()
        # Only io_uring holds submissions back until they are flushed.
        self._pass_on = getattr(self._context, "flush", None)
        self._loop.add_reader(self._context.fileno, self._poll)

    def ask(self) -> asyncio.Future[None]:
        """Ask the kernel. Raises if it takes no more at present, or never does."""
        self._landed = landed = self._loop.create_future()
        operation = self._operation.fdsync(self._descriptor)
        operation.set_callback(self._done)
        self._context.submit(operation)
        if self._pass_on is not None:
            self._pass_on()
        return landed

    def begin(self) -> asyncio.Future[None]:
        try:
            return self.ask()
        except Exception as error:  # caio has a type for each of the kernel's reasons
            log.debug("the kernel takes no flush, a thread does it: %s", error)
            return self._loop.run_in_executor(None, os.fdatasync, self._descriptor)

    def close(self) -> None:
        self._loop.remove_reader(self._context.fileno)
        os.close(self._descriptor)
        landed = self._landed
        if landed.done() and not landed.cancelled() and landed.exception() is None:
            _SPARE[self.name].append(self._context)

    def _poll(self) -> None:
        try:
            self._context.poll()
        except BlockingIOError:
            return  # An earlier look has seen the cause of this wake-up.
        self._context.process_events()

    def _done(self, result: int) -> None:
        if self._landed.done():
            return
        if result >= _NEGATIVE:
            result -= 2 * _NEGATIVE
        if result < 0:
            self._landed.set_exception(OSError(-result, os.strerror(-result)))
        else:
            self._landed.set_result(None)


def _context(name: str, module: ModuleType) -> Any:
    try:
        return _SPARE.setdefault(name, []).pop()
    except IndexError:
        return module.Context(max_requests=4)


class ThreadFlush:
    """`fdatasync` in a thread of its own."""

    name = "thread"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "zq-flush")

    def begin(self) -> asyncio.Future[None]:
        return self._loop.run_in_executor(self._thread, os.fdatasync, self._descriptor)

    def close(self) -> None:
        self._thread.shutdown()
        os.close(self._descriptor)


class OpenFiles:
    """Remembers the files that were opened, to tell later whether they still have their names.

    It reads the state of names only: closing a descriptor of a database would drop SQLite's locks.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = os.fspath(directory)
        self._names: tuple[int, int, int] | None = None
        paths = [directory / name for name in (FILE_NAME, WAL_NAME, SHM_NAME, LOCK_NAME)]
        self._identities = [(os.fspath(path), _identity(os.fspath(path))) for path in paths]

    def glance(self) -> None:
        """Call `check`, but only if names in the directory have changed. Every tick does this.

        The directory's time changes only as often as the kernel's clock ticks, every few
        milliseconds.
        """
        try:
            found = os.stat(self._directory)  # noqa: PTH116
            names = (found.st_dev, found.st_ino, found.st_mtime_ns)
        except FileNotFoundError:
            names = None
        if names is None or names != self._names:
            self.check()
            self._names = names

    def check(self) -> None:
        """Raise `FilesMoved` if one of the files is missing or has been replaced."""
        for path, identity in self._identities:
            if _identity(path) != identity:
                raise FilesMoved(Path(path))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  (once a second, four of them)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class FlushGate:
    """The way of a tick to the disk, for readers of its commit."""

    def __init__(self) -> None:
        self._in_doubt = False
        """True if visible changes may still be lost."""
        self._has_failed = False
        """True if the disk has failed: the doubt stays for as long as the store is open."""
        self._decided: asyncio.Future[None] | None = None
        """Done when the doubt has ended or is to stay; None if nobody waits."""

    def hold_back(self) -> None:
        """Make readers wait: changes that are visible, or soon will be, may still be lost."""
        self._in_doubt = True

    def let_go(self) -> None:
        """End the wait: the changes are on the disk, or were taken back."""
        self._in_doubt = self._has_failed
        if self._decided is not None:
            self._decided.set_result(None)
            self._decided = None

    def fail(self) -> None:
        """Let no reader tell anything from now on: nobody knows what is on the disk."""
        self._has_failed = True

    async def wait(self) -> None:
        """Wait until everything visible is on the disk. Raises `DiskFailed` if the disk fails."""
        if not self._in_doubt:
            return
        if not self._has_failed:
            if self._decided is None:
                self._decided = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._decided)
        if self._has_failed:
            raise DiskFailed


def _module(name: str) -> ModuleType | None:
    """A module of caio; None if the platform lacks it, as all but Linux do.

    It is loaded without its package, which imports multiprocessing for kinds that need no kernel.
    """
    package = find_spec("caio")
    places = None if package is None else package.submodule_search_locations
    found = None if places is None else PathFinder.find_spec(f"caio.{name}", places)
    if found is None or found.loader is None:
        return None
    try:
        module = module_from_spec(found)
        found.loader.exec_module(module)
    except ImportError:
        return None
    return module


KINDS: Sequence[tuple[str, ModuleType | None]] = (
    ("linux-aio", _module("linux_aio")),
    ("io-uring", _module("linux_uring")),
)
"""The kinds of the kernel, the cheaper one first: 36 and 70 µs of processor a flush."""


async def open_flush(path: Path, kinds: Sequence[tuple[str, ModuleType | None]] = KINDS) -> Flush:
    """Open the first kind of flush that works here. Kernels and containers lack some of them.

    Never pass the database or its shared memory: closing a descriptor of those would drop SQLite's
    locks. The log has none. Raises OSError if the file cannot be opened or flushed.
    """
    for name, module in kinds:
        if module is not None and (flush := await _try(name, module, path)) is not None:
            log.info("commits are flushed by the kernel", extra={"fields": {"by": name}})
            return flush
    log.info("commits are flushed by a thread: the kernel takes no flush that is not waited for")
    by_thread = ThreadFlush(_open(path))
    try:
        await by_thread.begin()
    except OSError:
        by_thread.close()
        raise
    return by_thread


async def _try(name: str, module: ModuleType, path: Path) -> KernelFlush | None:
    descriptor = _open(path)
    try:
        flush = KernelFlush(name, module, descriptor)
    except Exception as error:
        log.debug("no flush by %s: %s", name, error)
        os.close(descriptor)
        return None
    try:
        await flush.ask()
    except Exception as error:
        log.debug("no flush by %s: %s", name, error)
        flush.close()
        return None
    return flush


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
