"""Reads beside the tick: a lane for each kind of read, so that long reads delay no other kind.

Each lane has its own connections, which are opened at their first use, and threads for them. Reads
wait for a connection in order: first come, first served.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

import psycopg
from psycopg import errors

from zq.model.clock import SteadyClock
from zq.model.errors import ReadersBusy
from zq.store.errors import StoreAway, StoreError
from zq.store.lanes import (
    MOST_PAGES_WAITING,
    MOST_WAITING,
    SCANNERS,
    Dates,
    ReaderTurns,
    took_too_long,
)
from zq.store.postgres.connection import PLANS, SESSION, Connection, connect, cut, store_error

P = ParamSpec("P")
T = TypeVar("T")

_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


SILENT_S = 2.0
"""PostgreSQL ends a read at its deadline. If it has said nothing for so much longer, the connection
is given up."""


class RowReader:
    """A connection for reads, open from its first use on. One thread at a time uses it."""

    def __init__(self, address: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._connection: Connection | None = None

    def read(self, function: Callable[[Connection], T]) -> T:
        """Run a function whose queries all see one moment.

        If the connection was lost since the last read, it runs once more on another one.
        """
        was_open = self._connection is not None
        try:
            return self._read(function)
        except StoreAway as error:
            if not was_open:
                raise ReadersBusy(str(error)) from error
        return self._read(function)

    def _read(self, function: Callable[[Connection], T]) -> T:
        connection = self._opened()
        try:
            connection.execute(_BEGIN)
            try:
                return function(connection)
            finally:
                if not connection.closed:
                    connection.execute("ROLLBACK")
        except errors.QueryCanceled:
            raise took_too_long(self._timeout) from None
        except psycopg.Error as error:
            self.close()
            raise store_error(error) from error

    def cut(self) -> None:
        """End a read under way whose connection is silent. Any thread may ask."""
        connection = self._connection
        if connection is not None:
            cut(connection)

    def close(self) -> None:
        """Close the connection if it is open. The next read opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _opened(self) -> Connection:
        if self._connection is None:
            # `psycopg` waits in the kernel, so PostgreSQL itself ends what takes too long.
            limit = {"statement_timeout": str(max(int(self._timeout * 1000), 1))}
            try:
                self._connection = connect(self._address, SESSION | PLANS | limit)
            except StoreError as error:
                raise ReadersBusy(f"no connection can be opened for a read: {error}") from error
        return self._connection


class PostgresLane:
    """Reads of one kind. `most_waiting` limits how many wait for their turn."""

    def __init__(
        self, address: str, timeout: float, readers: int = 1, most_waiting: int | None = None
    ) -> None:
        """`timeout` is in seconds, for one read and for the wait for a turn."""
        self._threads = ThreadPoolExecutor(readers, "zq-read")
        self._readers = [RowReader(address, timeout) for _ in range(readers)]
        self._turns = ReaderTurns(self._readers, timeout, most_waiting)
        self._longest = timeout + SILENT_S

    async def read(
        self,
        function: Callable[Concatenate[Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a function on a reader. All its queries see one moment.

        Raises `ReadTimeout` at its deadline, and `ReadersBusy` if too many reads wait already, its
        turn does not come in time, or no connection can be opened.
        """

        def reading(connection: Connection) -> T:
            return function(connection, *args, **kwargs)

        reader = await self._turns.take()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, reader.read, reading)
        cutting = loop.call_later(self._longest, reader.cut)
        future.add_done_callback(lambda done: self._ended(reader, done, cutting))
        # If nobody waits any more, the reader is free once the read has ended all the same.
        return await asyncio.shield(future)

    def _ended(
        self, reader: RowReader, done: "asyncio.Future[T]", cutting: asyncio.TimerHandle
    ) -> None:
        cutting.cancel()
        if not done.cancelled():
            done.exception()
        self._turns.give_back(reader)

    def close(self) -> None:
        """Close the connections, once the reads under way have ended."""
        self._threads.shutdown()
        for reader in self._readers:
            reader.close()


class PostgresLanes(Dates):
    """All lanes. A read uses the one in which it delays no shorter read."""

    def __init__(self, address: str, timeout: float, steady: SteadyClock) -> None:
        super().__init__(steady)
        self.address = address
        self._lanes: list[PostgresLane] = []

        def lane(readers: int = 1, most_waiting: int | None = None) -> PostgresLane:
            made = PostgresLane(address, timeout, readers, most_waiting)
            self._lanes.append(made)
            return made

        self.deliveries = lane().read
        self.looks = lane().read
        self.sweeps = lane().read
        self.views = lane(1, MOST_WAITING).read
        self.pages = lane(1, MOST_PAGES_WAITING).read
        self.followers = lane().read
        self.scans = lane(SCANNERS, MOST_WAITING).read

    def close(self) -> None:
        """Close all connections, once the reads under way have ended."""
        for lane in self._lanes:
            lane.close()
