"""One child process at a time, and the line of calls that wait for it.

What cannot be stopped in a process of its own can be ended with that process. It is killed when a
call takes too long, when its caller goes away, or at the end. The next call starts another one.
"""

import asyncio
import heapq
import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from zq.model.errors import ZqError

MOST_WAITING = 16
"""At most so many calls of one kind wait for a process; the next one is refused. Newcomers are one
kind, all others the other: a flood of newcomers refuses no call that has behaved."""

_Waiting = tuple[bool, int, "asyncio.Future[None]"]


class Killable(Protocol):
    """A process as its lane sees it."""

    @property
    def has_ended(self) -> bool:
        """True if it has ended by itself, or was killed."""

    def kill(self) -> None:
        """End it now. This is harmless if it has ended."""

    async def reap(self) -> None:
        """Wait for the end of the killed process."""


P = TypeVar("P", bound=Killable)


class ProcessLane(ABC, Generic[P]):
    """Runs one call at a time in a process that lasts over calls. A subclass says what runs."""

    def __init__(self) -> None:
        self._process: P | None = None
        self._reaping: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._line: list[_Waiting] = []
        self._waiting = Counter[bool]()
        """How many calls wait, by whether they are newcomers."""
        self._busy = False
        self._closed = False

    @abstractmethod
    async def _start(self) -> P:
        """A new process that is ready for calls. Raises a `ZqError` if it does not start."""

    @abstractmethod
    def _full(self, waiting: int) -> ZqError:
        """The error of a call when so many wait already."""

    @abstractmethod
    def _over(self) -> ZqError:
        """The error of a call after `close`."""

    async def close(self) -> None:
        """End the process. Calls that are under way or waiting raise an error."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        while self._busy:
            # Wait behind all others, which find the lane closed.
            await self._wait(last=True)
            self._drop()
            self._pass_on()
        self._drop()
        await asyncio.gather(*self._reaping)

    @asynccontextmanager
    async def _turn(self, *, newcomer: bool = False) -> AsyncIterator[None]:
        """The turn of one call. Newcomers wait behind all others."""
        if self._busy:
            if self._waiting[newcomer] >= MOST_WAITING:
                raise self._full(self._waiting[newcomer])
            await self._wait(last=newcomer)
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

    async def _ready(self) -> P:
        """The process, which is started if there is none."""
        self._refuse_if_closed()
        if self._process is None or self._process.has_ended:
            self._drop()
            self._process = await self._start()
            self._refuse_if_closed()
        return self._process

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise self._over()

    def _drop(self) -> None:
        """End the process, if there is one. The next call starts another."""
        if self._process is None:
            return
        self._process.kill()
        # The process ends in a task of its own, since the caller may be cancelled again.
        reaping = asyncio.create_task(self._process.reap())
        self._reaping.add(reaping)
        reaping.add_done_callback(self._reaping.discard)
        self._process = None

    async def _wait(self, *, last: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._line, (last, next(self._numbers), turn))
        self._waiting[last] += 1
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # The call got its turn in the same moment.
                self._pass_on()
            raise
        finally:
            self._waiting[last] -= 1

    def _pass_on(self) -> None:
        """Give the turn to the next call in line, or leave it to the next that comes."""
        while self._line:
            _, _, turn = heapq.heappop(self._line)
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
