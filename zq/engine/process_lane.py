"""One child process at a time, and the line of calls that wait for it.

What cannot be stopped in a process of its own can be ended with that process. It is killed when a
call takes too long, when its caller goes away, or at the end. The next call starts another one.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from zq.engine.piped_process import PipedProcess
from zq.engine.turns import FairLine, asker
from zq.model.errors import ZqError

MOST_OF_ONE = 16
"""The most calls of one owner that wait for a process; the next one is refused."""

MOST_WAITING = 4 * MOST_OF_ONE
"""The most calls of one kind that wait. Newcomers are one kind, all others the other: a flood of
newcomers refuses no call that has behaved."""

P = TypeVar("P", bound=PipedProcess)

_Turn = asyncio.Future[None]


class ProcessLane(ABC, Generic[P]):
    """Runs one call at a time in a process that lasts over calls. A subclass says what runs.

    The owners of calls take turns. If too many wait, the owner of most of them gives way.
    """

    def __init__(self) -> None:
        self._process: P | None = None
        self._reaping: set[asyncio.Task[int]] = set()
        self._lines = {False: FairLine[_Turn](), True: FairLine[_Turn]()}
        """The calls that wait, by whether they are newcomers."""
        self._busy = False
        self._served: object = None
        """The owner of the call that runs, or ran last."""
        self._closed = False

    @abstractmethod
    async def _start(self) -> P:
        """A new process that is ready for calls. Raises a `ZqError` if it does not start."""

    @abstractmethod
    def _full(self, waiting: int) -> ZqError:
        """The error of a call when too many wait already."""

    @abstractmethod
    def _over(self) -> ZqError:
        """The error of a call after `close`."""

    async def close(self) -> None:
        """End the process. Calls that are under way or waiting raise an error."""
        self._closed = True
        if self._process is not None:
            self._process.kill()
        while self._busy:
            # The others that wait find the lane closed.
            await self._wait(self, newcomer=True)
            self._drop()
            self._pass_on()
        self._drop()
        await asyncio.gather(*self._reaping)

    def _waits_for_others(self, *, newcomer: bool) -> bool:
        """True if the next call would wait, but for no other call of its owner."""
        owner = asker()
        return self._busy and self._served != owner and not self._lines[newcomer].count(owner)

    @asynccontextmanager
    async def _turn(self, owner: object = None, *, newcomer: bool = False) -> AsyncIterator[None]:
        """The turn of one call. Newcomers wait behind all others.

        Its owner is whoever sent the request that is being served, unless another one is named.
        """
        owner = asker() if owner is None else owner
        if self._busy:
            self._make_room(owner, self._lines[newcomer])
            await self._wait(owner, newcomer=newcomer)
        self._busy = True
        self._served = owner
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

    def _make_room(self, owner: object, line: FairLine[_Turn]) -> None:
        """Raise an error unless one more call of the owner may wait."""
        if line.count(owner) >= MOST_OF_ONE:
            raise self._full(line.count(owner))
        if len(line) >= MOST_WAITING:
            largest = line.largest()
            if line.count(largest) <= line.count(owner) + 1:
                raise self._full(len(line))
            newest = line.pop_newest(largest)
            if not newest.done():
                newest.set_exception(self._full(len(line)))

    async def _wait(self, owner: object, *, newcomer: bool) -> None:
        turn: _Turn = asyncio.get_running_loop().create_future()
        line = self._lines[newcomer]
        line.add(owner, turn)
        try:
            await turn
        except asyncio.CancelledError:
            line.remove(owner, turn)
            if not (turn.cancelled() or turn.exception()):
                # The call got its turn in the same moment.
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give the turn to the next call in line, or leave it to the next that comes."""
        for line in self._lines.values():
            while line:
                turn = line.pop()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._busy = False
