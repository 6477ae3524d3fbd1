"""How the baseline's transactions get to the disk: in a thread, or on the loop beside a flush."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import aiosqlite

T = TypeVar("T")
Transaction = Callable[[sqlite3.Connection], T]
Kind = Literal["loop", "thread"]
KINDS: tuple[Kind, ...] = ("loop", "thread")


class Disk(Protocol):
    async def commit(self, transaction: Transaction[T]) -> T:
        """Run a transaction. Return its result once it is on the disk."""
        ...


class InThread:
    """The transaction and its fsync run in the connection's thread."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def commit(self, transaction: Transaction[T]) -> T:
        run = partial(transaction, self._connection._conn)
        result: T = await self._connection._execute(run)  # type: ignore[no-untyped-call]
        return result


class OnLoop:
    """The transaction runs on the event loop; then the kernel is asked to flush the log."""

    def __init__(self, connection: sqlite3.Connection, log: int, kernel: Any, flush: Any) -> None:
        """`log` is a descriptor of the write-ahead log; `flush` makes the kernel's operation."""
        self._connection = connection
        self._log = log
        self._kernel = kernel
        self._flush = flush
        self._landed: asyncio.Future[None] | None = None

    async def commit(self, transaction: Transaction[T]) -> T:
        result = transaction(self._connection)
        self._landed = asyncio.get_running_loop().create_future()
        operation = self._flush(self._log)
        operation.set_callback(self._done)
        self._kernel.submit(operation)
        await self._landed
        return result

    def look(self) -> None:
        """Read from the kernel which flushes are done."""
        with contextlib.suppress(BlockingIOError):
            self._kernel.poll()
        self._kernel.process_events()

    def _done(self, result: int) -> None:
        assert self._landed is not None
        if result:
            self._landed.set_exception(OSError("the flush failed"))
        else:
            self._landed.set_result(None)


@contextlib.asynccontextmanager
async def open_disk(path: Path, schema: str, kind: Kind) -> AsyncIterator[Disk]:
    """Open a new database, and run the schema."""
    async with in_thread(path, schema) if kind == "thread" else on_loop(path, schema) as disk:
        yield disk


@contextlib.asynccontextmanager
async def in_thread(path: Path, schema: str) -> AsyncIterator[Disk]:
    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.executescript(f"PRAGMA synchronous = FULL; {schema}")
        yield InThread(connection)


@contextlib.asynccontextmanager
async def on_loop(path: Path, schema: str) -> AsyncIterator[Disk]:
    from caio import linux_aio  # Only Linux has it

    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(
            contextlib.closing(sqlite3.connect(path, isolation_level=None))
        )
        connection.executescript(f"PRAGMA synchronous = NORMAL; {schema}")
        log = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, log)
        kernel = linux_aio.Context(max_requests=1)
        disk = OnLoop(connection, log, kernel, linux_aio.Operation.fdsync)
        loop.add_reader(kernel.fileno, disk.look)
        stack.callback(loop.remove_reader, kernel.fileno)
        yield disk
