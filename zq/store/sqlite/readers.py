"""Who reads beside the writer: a lane for each kind of read, so that long ones hold up none other.

A lane has connections of its own, and a line of those who wait for one, first come, first served.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from zq.model.errors import ReadersBusy, ReadTimeout
from zq.store.sqlite.connection import Deadline, HopConnection, in_snapshot, is_interrupt
from zq.store.sqlite.quarantine import UnreadableRows

P = ParamSpec("P")
T = TypeVar("T")

SCANNERS = 2
READERS = 4 + SCANNERS
"""Connections in all."""

MOST_WAITING = 32
"""Scans that wait for a reader; the next one is refused."""


class After(NamedTuple):
    """What follows a read."""

    repair: Callable[[UnreadableRows], Awaitable[bool]]
    """Has rows set aside that cannot be read; whether there were any."""
    landed: Callable[[], Awaitable[None]]
    """Waits until what was seen is on the disk."""


async def _at_once() -> None:
    """What is delivered was on the disk before it was claimed."""


class Lane:
    """Reads of one kind. `most_waiting` bounds its line, if it is not bounded by what waits in it.

    `timeout` in seconds bounds one read, and in a bounded line as well the wait for its turn.
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
        """Run a function of `reads` on a reader, where all its queries see one moment.

        Where rows cannot be read, they are set aside first. Raises `ReadTimeout` at its deadline,
        and `ReadersBusy` where too many wait already or its turn does not come.
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
            if not is_interrupt(error):
                raise
            raise ReadTimeout(
                f"reading took longer than {self._timeout:g} s: narrow the filter (by id,"
                " status or queue), ask for a smaller page, or raise --read-timeout"
            ) from None
        finally:
            self._free.put_nowait(reader)

    async def _turn(self) -> HopConnection:
        """The reader whose turn it is, in a bounded line."""
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
    """All of them. `timeout` is in seconds."""

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
        """Payloads of jobs that are delivered: workers wait for them."""
        self.looks = Lane([next(rest)], timeout, after)
        """What does not grow with the jobs: one of them, the kept counts."""
        self.sweeps = Lane([next(rest)], timeout, after)
        """Slices of changes by filter, one at a time of each."""
        self.views = Lane([next(rest)], timeout, after, MOST_WAITING)
        """What operators watch, again and again."""
        self.scans = Lane(list(islice(rest, SCANNERS)), timeout, after, MOST_WAITING)
        """What visits as many jobs as the request makes it."""
