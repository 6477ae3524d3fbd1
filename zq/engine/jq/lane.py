"""One process for jq, and the line of calls that wait for it.

A program cannot be stopped, but a process can. It is killed when a call takes too long, when its
caller goes away, or at the end. The next call starts another process (30 ms).
"""

import asyncio
import heapq
import itertools
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from zq.engine.jq.process import JqProcess
from zq.model.errors import FilterAborted, FiltersBusy

MOST_WAITING = 16
"""At most so many calls of one kind wait for a process; the next one is refused. Newcomers are one
kind, all others the other: a flood of newcomers refuses no program that has behaved."""

_START_TIMEOUT_S = 10

_Waiting = tuple[bool, int, "asyncio.Future[None]"]


class Overtime(Exception):
    """A call took longer than its time. Its process is gone."""


class JqAnswer(NamedTuple):
    """Whether a program compiles, the reply of each payload or the reason, and the time taken."""

    compiles: bool
    body: bytes
    seconds: float


class JqLane:
    """Runs one call at a time. `memory` (bytes) and `cpu_seconds` limit its process."""

    def __init__(self, memory: int, cpu_seconds: int) -> None:
        self._memory = memory
        self._cpu_seconds = cpu_seconds
        self._process: JqProcess | None = None
        self._reaping: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._line: list[_Waiting] = []
        self._waiting = Counter[bool]()
        """How many calls wait, by whether they are newcomers."""
        self._busy = False
        self._closed = False

    async def run(
        self,
        source: bytes,
        payloads: Sequence[str],
        limit: asyncio.Timeout,
        *,
        seconds: float,
        newcomer: bool = False,
        outputs: bool = False,
    ) -> JqAnswer:
        """Run a program over payloads, or only compile it if there are none.

        The answer says for each payload whether it matches, or has its `outputs`.

        Newcomers wait behind all others. Raises `FiltersBusy`, `FilterAborted`, or `Overtime` after
        `seconds`. The start of a process does not count, neither here nor in `limit`, which bounds
        the whole work of the caller.
        """
        async with self._turn(newcomer=newcomer):
            try:
                process = await self._ready(limit)
                try:
                    async with asyncio.timeout(seconds):
                        began = asyncio.get_running_loop().time()
                        compiles, body = await process.ask(source, payloads, outputs=outputs)
                        took = asyncio.get_running_loop().time() - began
                        return JqAnswer(compiles, body, took)
                except TimeoutError:
                    raise Overtime from None
            except BaseException:
                # If the caller is cancelled too: its reply would answer the next call.
                self._drop()
                raise

    async def close(self) -> None:
        """End the process. Calls that are under way or waiting raise FilterAborted."""
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
    async def _turn(self, *, newcomer: bool) -> AsyncIterator[None]:
        if self._busy:
            if self._waiting[newcomer] >= MOST_WAITING:
                raise FiltersBusy(self._waiting[newcomer])
            await self._wait(last=newcomer)
        self._busy = True
        try:
            yield
        finally:
            self._pass_on()

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

    async def _ready(self, limit: asyncio.Timeout) -> JqProcess:
        self._refuse_if_closed()
        if self._process is None or self._process.has_ended:
            self._drop()
            loop, ends = asyncio.get_running_loop(), limit.when()
            began = loop.time()
            limit.reschedule(None)
            await self._start()
            limit.reschedule(None if ends is None else ends + loop.time() - began)
            self._refuse_if_closed()
        assert self._process is not None
        return self._process

    async def _start(self) -> None:
        try:
            # Nothing can be created in the directory once it is gone, and nothing is left behind.
            with tempfile.TemporaryDirectory(prefix="zq-jq-") as empty:
                self._process = await JqProcess.start(empty, self._memory, self._cpu_seconds)
                async with asyncio.timeout(_START_TIMEOUT_S):
                    await self._process.reply()
        except OSError as error:  # TimeoutError is one
            raise FilterAborted(f"the filter's process did not start: {error!r}") from error

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise FilterAborted("the server is stopping")

    def _drop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        # The process ends in a task of its own, since the caller may be cancelled again.
        reaping = asyncio.create_task(self._process.reap())
        self._reaping.add(reaping)
        reaping.add_done_callback(self._reaping.discard)
        self._process = None
