"""Puts what was written to the log on the disk, without holding the event loop meanwhile.

A commit writes to the log and returns. Its flush is asked of the kernel, which says through a
descriptor that the loop watches when the disk has it: no thread takes part, so the interpreter's
lock changes hands nowhere. Where the kernel cannot, a thread waits instead.

A commit is visible to readers a little before its flush has landed. What leaves the server waits
for that (`Landing`), so that no power cut takes back what somebody was told: one rule for all that
is read. Where commits are not waited for (buffered mode), neither are they here.
"""

import asyncio
import logging
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from zq.model.errors import ServiceUnavailable

log = logging.getLogger(__name__)

_NEGATIVE = 2**63
"""caio hands a negative number of the kernel's over as one without a sign."""


_SPARE: dict[str, list[Any]] = {}
"""Contexts without a file, by the name of their kind.

The kernel takes about 35 ms to give one up, and the interpreter stands still meanwhile. A program
that opens and closes engines all the time, as a suite of tests does, uses the same one again.
"""
# A fork does not inherit the kernel's side of a context.
os.register_at_fork(after_in_child=_SPARE.clear)


class Flush(Protocol):
    """One file's way to the disk. At most one flush is under way at a time."""

    name: str
    """What `/health` says of it."""

    def begin(self) -> asyncio.Future[None]:
        """Flush what has been written so far; the future raises OSError where the disk fails."""
        ...

    def close(self) -> None:
        """Let go of the file. No flush may be under way."""
        ...


class KernelFlush:
    """Asynchronous input and output of the kernel's, by one of caio's modules."""

    def __init__(self, name: str, module: ModuleType, descriptor: int) -> None:
        """Raises where the kernel does not have it, by whatever type caio gives its reason."""
        self.name = name
        self._operation: Any = module.Operation
        self._context: Any = _context(name, module)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._landed: asyncio.Future[None] = self._loop.create_future()
        # io_uring alone keeps submissions back until it is told to pass them on.
        self._pass_on = getattr(self._context, "flush", None)
        self._loop.add_reader(self._context.fileno, self._look)

    def ask(self) -> asyncio.Future[None]:
        """Ask the kernel. Raises where it takes nothing more at present, or never does."""
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
        except Exception as error:  # caio has a type of its own for each reason of the kernel's
            log.debug("the kernel takes no flush, a thread does it: %s", error)
            return self._loop.run_in_executor(None, os.fdatasync, self._descriptor)

    def close(self) -> None:
        self._loop.remove_reader(self._context.fileno)
        os.close(self._descriptor)
        landed = self._landed
        if landed.done() and not landed.cancelled() and landed.exception() is None:
            _SPARE[self.name].append(self._context)

    def _look(self) -> None:
        try:
            self._context.poll()
        except BlockingIOError:
            return  # The wake-up was for what an earlier look has seen.
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


class Landing:
    """One tick's way to the disk, as those see it who have read what it has committed."""

    def __init__(self) -> None:
        self._in_doubt = False
        """Whether what is visible may not last."""
        self._landed: asyncio.Future[bool] | None = None
        """Whether it got to the disk, for those who wait; None where nobody does."""

    def hold_back(self) -> None:
        """Let those wait who read now: what is visible, or will be shortly, may not last."""
        self._in_doubt = True

    def let_go(self, is_safe: bool) -> None:
        """It is on the disk, or never will be."""
        self._in_doubt = False
        if self._landed is not None:
            self._landed.set_result(is_safe)
            self._landed = None

    async def wait(self) -> None:
        """Until what is visible now is on the disk.

        Raises `ServiceUnavailable` where the disk fails.
        """
        if not self._in_doubt:
            return
        if self._landed is None:
            self._landed = asyncio.get_running_loop().create_future()
        if not await asyncio.shield(self._landed):
            raise ServiceUnavailable("the server is stopping after a failure of its disk")


def _module(name: str) -> ModuleType | None:
    """A part of caio's; None where the platform has none, as others than Linux."""
    with warnings.catch_warnings():
        # It warns of every kind that a platform lacks; which one is used is said at the start.
        warnings.simplefilter("ignore")
        try:
            return import_module(f"caio.{name}")
        except ImportError:
            return None


KINDS: Sequence[tuple[str, ModuleType | None]] = (
    ("linux-aio", _module("linux_aio")),
    ("io-uring", _module("linux_uring")),
)
"""The kernel's ways, the cheaper one first: 36 and 70 µs of processor a flush."""


async def open_flush(path: Path, kinds: Sequence[tuple[str, ModuleType | None]] = KINDS) -> Flush:
    """The first way to flush a file that works here; kernels and containers lack one or the other.

    Never give it the database or its shared memory: closing a descriptor of those would drop
    SQLite's locks. The log carries none. Raises OSError where the file cannot be opened or flushed.
    """
    for name, module in kinds:
        if module is not None and (flush := await _try(name, module, path)) is not None:
            level = logging.DEBUG if name == KINDS[0][0] else logging.INFO
            log.log(level, "commits are flushed by the kernel", extra={"fields": {"by": name}})
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
