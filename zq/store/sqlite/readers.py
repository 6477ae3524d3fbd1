"""Reads beside the writer: a lane for each kind of read, so that long reads delay no other kind.

Each lane has its own connections. Reads wait for one in order: first come, first served.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from zq.model.errors import DatabaseLocked, ReadersBusy, ReadTimeout
from zq.store.sqlite.connection import (
    Deadline,
    HopConnection,
    in_snapshot,
    is_busy,
    is_corrupt,
    is_interrupt,
)
from zq.store.sqlite.quarantine import UnreadableRows

P = ParamSpec("P")
T = TypeVar("T")

SCANNERS = 2
READERS = 6 + SCANNERS
"""How many connections there are in all."""

MOST_WAITING = 32
"""How many scans may wait for a reader. The next one is refused."""


MOST_PAGES_WAITING = 1_000
"""How many pages of topics may wait for a reader: each takes a few milliseconds."""


class After(NamedTuple):
    """The steps that follow a read."""

    repair: Callable[[UnreadableRows], Awaitable[bool]]
    """Sets aside rows that cannot be read. Returns whether there were any."""
    landed: Callable[[], Awaitable[None]]
    """Waits until the changes that the read saw are on the disk."""


async def _at_once() -> None:
    """Do not wait: a job is on the disk before it is claimed."""


class Lane:
    """Reads of one kind. `most_waiting` limits how many wait, unless other limits already do.

    `timeout` is in seconds. It limits one read and, with `most_waiting`, also the wait for a turn.
    """

    def __init__(
        self,
        readers: Sequence[HopConnection],
        timeout: float,
        after: After,
        most_waiting: int | None = None,
    ) -> None:
        self._after = after
        self._timeout = timeout
        self._most_waiting = most_waiting
        self._waiting = 0
        self._free: asyncio.Queue[HopConnection] = asyncio.Queue()
        for reader in readers:
            self._free.put_nowait(reader)

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
        reader = await (self._free.get() if self._most_waiting is None else self._turn())
        deadline = Deadline(self._timeout)
        query = partial(function, reader.raw, *args, **kwargs)
        bounded = partial(deadline.bound, reader.raw, query)
        try:
            return await reader.hop(in_snapshot, reader.raw, bounded)
        except asyncio.CancelledError:
            deadline.expire()
            raise
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise DatabaseLocked from None
            if not is_interrupt(error):
                raise
            raise ReadTimeout(
                f"reading took longer than {self._timeout:g} s: narrow the filter (by id,"
                " status or queue), ask for a smaller page, or raise --read-timeout"
            ) from None
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            # No row is known that could be set aside, so the server cannot go on.
            raise UnreadableRows("pages", [str(error)]) from error
        finally:
            self._free.put_nowait(reader)

    async def _turn(self) -> HopConnection:
        """Wait for a reader, within the limits of the lane."""
        assert self._most_waiting is not None
        if self._waiting >= self._most_waiting:
            raise ReadersBusy(f"{self._waiting} long reads wait for their turn already")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._timeout):
                return await self._free.get()
        except TimeoutError:
            raise ReadersBusy(
                f"the long reads before this one took longer than {self._timeout:g} s"
            ) from None
        finally:
            self._waiting -= 1


class ReaderPool:
    """All lanes. `timeout` is in seconds."""

    def __init__(
        self,
        connections: Sequence[HopConnection],
        timeout: float,
        repair: Callable[[UnreadableRows], Awaitable[bool]],
        landed: Callable[[], Awaitable[None]],
    ) -> None:
        after = After(repair, landed)
        rest: Iterator[HopConnection] = iter(connections)
        self.connections = connections
        self.deliveries = Lane([next(rest)], timeout, After(repair, _at_once))
        """Payloads and numbers of jobs that are being delivered. Workers wait for these."""
        self.looks = Lane([next(rest)], timeout, after)
        """Reads whose cost does not grow with the number of jobs: a single job, the kept counts."""
        self.sweeps = Lane([next(rest)], timeout, after)
        """Slices of sweeps, one read of each sweep at a time."""
        self.views = Lane([next(rest)], timeout, after, MOST_WAITING)
        """Views of operators, which are repeated again and again."""
        self.topics = Lane([next(rest)], timeout, after, MOST_PAGES_WAITING)
        """Pages of topics, a few milliseconds each."""
        self.followers = Lane([next(rest)], timeout, after)
        """The lane of readers that a tick has woken, however many there are."""
        self.scans = Lane(list(islice(rest, SCANNERS)), timeout, after, MOST_WAITING)
        """Reads that visit as many jobs as the request requires."""
