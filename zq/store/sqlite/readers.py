"""Reads beside the writer: a lane for each kind of read, so that long reads delay no other kind.

Each lane has its own connections. Reads wait for one in order: first come, first served. A
connection is open only while it is needed: it costs a thread, and a copy of the schema.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from traceback import clear_frames
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from zq.model.clock import SteadyClock
from zq.model.errors import DatabaseLocked, ReadersBusy, ServiceUnavailable
from zq.store.errors import StoreError
from zq.store.lanes import (
    MOST_PAGES_WAITING,
    MOST_WAITING,
    SCANNERS,
    Dates,
    ReaderTurns,
    took_too_long,
)
from zq.store.snapshot import ANY_TABLE
from zq.store.sqlite.connection import (
    Deadline,
    HopConnection,
    in_snapshot,
    is_busy,
    is_corrupt,
    is_interrupt,
)
from zq.store.sqlite.quarantine import UnreadableRows, is_unreadable

P = ParamSpec("P")
T = TypeVar("T")

IDLE_S = 10
"""How long a connection stays open after its last read, at the least."""


class AfterRead(NamedTuple):
    """The steps that follow a read."""

    repair: Callable[[UnreadableRows], Awaitable[bool]]
    """Sets aside rows that cannot be read. Returns whether there were any."""
    landed: Callable[[], Awaitable[None]]
    """Waits until the changes that the read saw are on the disk."""


async def _at_once() -> None:
    """Do not wait: a job is on the disk before it is claimed."""


class OpenedLater:
    """A connection that is opened at its first use, and closed when it has not been used lately."""

    def __init__(
        self,
        opening: Callable[[], Coroutine[Any, Any, HopConnection]],
        rested: Callable[[], object],
    ) -> None:
        """`rested` is called once it was closed because nobody used it."""
        self._opening = opening
        self._rested = rested
        self._opened: asyncio.Task[HopConnection] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._uses = 0
        self._in_use = False
        self._closed = False

    async def connection(self) -> HopConnection:
        """The connection. Call `used` after each use.

        Raises what opening it raises, and `ServiceUnavailable` after `close`: nobody would close
        what a late request opened.
        """
        if self._closed:
            raise ServiceUnavailable("the server is stopping")
        self._uses += 1
        self._in_use = True
        if self._opened is None:
            self._opened = asyncio.create_task(self._opening())
        try:
            # A reader that gives up leaves the connection to the next one.
            return await asyncio.shield(self._opened)
        except Exception as error:
            self._opened = None
            if isinstance(error, OSError) or (
                isinstance(error, sqlite3.OperationalError) and not is_busy(error)
            ):
                raise ReadersBusy(f"no connection can be opened for a read: {error}") from error
            raise

    def used(self) -> None:
        """Let it be closed if it is not used again soon."""
        self._in_use = False
        if self._timer is None and not self._closed:
            self._wait()

    async def close(self) -> None:
        """Close it now if it is open, and open it no more. It may not be in use."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._let_go()
        if self._closing is not None:
            await self._closing

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(IDLE_S, self._close_if_idle, self._uses)

    def _close_if_idle(self, uses: int) -> None:
        """Close the connection if it has not been used since there were so many `uses`."""
        self._timer = None
        if self._in_use or self._uses != uses:
            self._wait()
        else:
            self._let_go()

    def _let_go(self) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            self._closing = asyncio.create_task(self._close(opened, self._closing))

    async def _close(
        self, opened: asyncio.Task[HopConnection], before: asyncio.Task[None] | None
    ) -> None:
        with contextlib.suppress(sqlite3.Error, OSError, StoreError):
            await (await opened).close()
        if not self._closed:
            self._rested()
        if before is not None:
            await before


class Lane:
    """Reads of one kind. `most_waiting` limits how many wait, unless other limits already do.

    `timeout` is in seconds. It limits one read and, with `most_waiting`, also the wait for a turn.
    """

    def __init__(
        self,
        readers: Sequence[OpenedLater],
        timeout: float,
        after: AfterRead,
        most_waiting: int | None = None,
    ) -> None:
        self._after = after
        self._timeout = timeout
        self._turns = ReaderTurns(readers, timeout, most_waiting)

    async def read(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a function of `lookups` on a reader. All its queries see one moment.

        Unreadable rows are set aside, and the read is repeated. Raises `ReadTimeout` at its
        deadline, and `ReadersBusy` if too many reads wait already or its turn does not come in
        time.
        """
        while True:
            try:
                found = await self._read(function, *args, **kwargs)
            except UnreadableRows as unreadable:
                if not await self._after.repair(unreadable):
                    raise
            else:
                await self._after.landed()
                return found

    async def _read(
        self,
        function: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        reader = await self._turns.take()
        deadline = Deadline(self._timeout)
        try:
            connection = await reader.connection()
            query = partial(function, connection.raw, *args, **kwargs)
            bounded = partial(deadline.bound, connection.raw, query)
            return await connection.hop(in_snapshot, connection.raw, bounded)
        except asyncio.CancelledError:
            deadline.expire()
            raise
        except UnreadableRows:
            raise
        except Exception as error:
            if (told := self._told_for(error)) is not None:
                # A cursor that lives on in a frame would keep its moment for the next read.
                clear_frames(error.__traceback__)
                raise told from error
            raise
        finally:
            reader.used()
            self._turns.give_back(reader)

    def _told_for(self, error: Exception) -> Exception | None:
        """What a read raises in the place of an error; None if that is the error itself."""
        if isinstance(error, sqlite3.Error):
            if is_busy(error):
                return DatabaseLocked()
            if is_interrupt(error):
                return took_too_long(self._timeout)
            if is_corrupt(error):
                # No row is known that could be set aside, so the server cannot go on.
                return UnreadableRows("pages", [str(error)])
        return UnreadableRows(ANY_TABLE, ()) if is_unreadable(error) else None


class ReaderPool:
    """All lanes. `opening` opens a connection for one of them. `timeout` is in seconds."""

    def __init__(
        self,
        opening: Callable[[], Coroutine[Any, Any, HopConnection]],
        timeout: float,
        repair: Callable[[UnreadableRows], Awaitable[bool]],
        landed: Callable[[], Awaitable[None]],
        rested: Callable[[], object],
    ) -> None:
        """`rested` is called when a connection was closed that was not used lately."""
        after = AfterRead(repair, landed)
        self._readers: list[OpenedLater] = []

        def readers(count: int = 1) -> list[OpenedLater]:
            made = [OpenedLater(opening, rested) for _ in range(count)]
            self._readers += made
            return made

        self.deliveries = Lane(readers(), timeout, AfterRead(repair, _at_once))
        """Payloads and numbers of jobs that are being delivered. Workers wait for these."""
        self.looks = Lane(readers(), timeout, after)
        """Reads whose cost does not grow with the number of jobs: a single job, the kept counts."""
        self.sweeps = Lane(readers(), timeout, after)
        """Slices of sweeps, one read of each sweep at a time."""
        self.views = Lane(readers(), timeout, after, MOST_WAITING)
        """Views of operators, which are repeated again and again."""
        self.topics = Lane(readers(), timeout, after, MOST_PAGES_WAITING)
        """Pages of topics, a few milliseconds each."""
        self.followers = Lane(readers(), timeout, after)
        """The lane of readers that a tick has woken, however many there are."""
        self.scans = Lane(readers(SCANNERS), timeout, after, MOST_WAITING)
        """Reads that visit as many jobs as the request requires."""

    async def close(self) -> None:
        """Close the connections. No read may be under way."""
        for reader in self._readers:
            await reader.close()


class ReadLanes(Dates):
    """The lanes of a pool. A read uses the one in which it delays no shorter read."""

    def __init__(self, pool: ReaderPool, steady: SteadyClock) -> None:
        super().__init__(steady)
        self.looks = pool.looks.read
        self.scans = pool.scans.read
        self.sweeps = pool.sweeps.read
        self.deliveries = pool.deliveries.read
        self.views = pool.views.read
        self.pages = pool.topics.read
        self.followers = pool.followers.read
