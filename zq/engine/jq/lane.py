"""One process for jq, and the line of calls that wait for it.

A program cannot be stopped, but a process can. The next call starts another process (30 ms).
"""

import asyncio
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from zq.engine.jq.process import JqProcess
from zq.engine.process_lane import ProcessLane
from zq.model.errors import FilterAborted, FilterNotStarted, FiltersBusy

_START_TIMEOUT_S = 10


OTHERS_S = 10.0
"""The longest extra time, in seconds, that a call waits for the calls of others."""


class Overtime(Exception):
    """A call took longer than its time. Its process is gone."""


class JqAnswer(NamedTuple):
    """The answer of jq about a program: if it compiles, the reply of each payload; else the
    reason."""

    compiles: bool
    body: bytes
    seconds: float


class JqLane(ProcessLane[JqProcess]):
    """Runs one call at a time. `memory` (bytes) and `cpu_seconds` limit its process."""

    def __init__(self, memory: int, cpu_seconds: int) -> None:
        super().__init__()
        self._memory = memory
        self._cpu_seconds = cpu_seconds

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
        the whole work of the caller. Nor does the wait of a call for those of other owners, up to
        `OTHERS_S`: one client's slow programs use up nobody else's time.
        """
        began, ends = asyncio.get_running_loop().time(), limit.when()
        waits = ends is not None and self._waits_for_others(newcomer=newcomer)
        if waits:
            limit.reschedule(_later(ends, OTHERS_S))
        async with self._turn(newcomer=newcomer):
            if waits:
                limit.reschedule(_later(ends, asyncio.get_running_loop().time() - began))
            try:
                process = await self._ready_beyond(limit)
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

    async def _ready_beyond(self, limit: asyncio.Timeout) -> JqProcess:
        """The process. The limit moves on by the time that its start takes."""
        if self._process is not None and not self._process.has_ended:
            return await self._ready()
        loop, ends = asyncio.get_running_loop(), limit.when()
        began = loop.time()
        limit.reschedule(None)
        process = await self._ready()
        limit.reschedule(_later(ends, loop.time() - began))
        return process

    async def _start(self) -> JqProcess:
        process: JqProcess | None = None
        try:
            # Nothing can be created in the directory once it is gone, and nothing is left behind.
            with tempfile.TemporaryDirectory(prefix="zq-jq-") as empty:
                process = await JqProcess.start(empty, self._memory, self._cpu_seconds)
                async with asyncio.timeout(_START_TIMEOUT_S):
                    await process.reply()
        except OSError as error:  # TimeoutError is one
            raise FilterNotStarted(f"the filter's process did not start: {error!r}") from error
        finally:
            self._process = process
        return process

    def _full(self, waiting: int) -> FiltersBusy:
        return FiltersBusy(waiting)

    def _over(self) -> FilterAborted:
        return FilterAborted("the server is stopping")


def _later(ends: float | None, seconds: float) -> float | None:
    return None if ends is None else ends + seconds
