"""One process for jq, and the line of calls that wait for it.

A program cannot be stopped, but a process can. The next call starts another process (30 ms).
"""

import asyncio
import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from zq.engine.jq import child
from zq.engine.jq.child import REPLY, REQUEST, ROW
from zq.engine.piped_process import CHUNK, PipedProcess
from zq.engine.process_lane import ProcessLane
from zq.model.errors import FilterAborted, FilterNotStarted, FiltersBusy


class JqProcess(PipedProcess):
    """One process. It is useless after any error."""

    @classmethod
    async def start(cls, directory: str, memory: int, cpu_seconds: int) -> Self:
        """Start it in `directory`. Its first reply comes without a request."""
        limits = str(memory), str(cpu_seconds)
        return await cls.of(child, _jq_directory(), *limits, cwd=directory)

    async def ask(
        self, source: bytes, payloads: Sequence[str], *, outputs: bool = False
    ) -> tuple[bool, bytes]:
        """True if the program compiles, with the reply of `child.py`; else false, with the reason.

        The reply has a byte a payload, or the outputs.
        """
        try:
            await self.write(_chunks(source, payloads, outputs))
        except ConnectionError:
            raise await self._death() from None
        return await self.reply()

    async def reply(self) -> tuple[bool, bytes]:
        try:
            compiles, length = REPLY.unpack(await self.read(REPLY.size))
            return compiles, await self.read(length)
        except asyncio.IncompleteReadError:
            raise await self._death() from None

    async def _death(self) -> FilterAborted:
        status = await self.reap()
        return FilterAborted(
            f"the filter's process ended by itself (status {status}), most likely because the"
            " program or a payload needs too much memory: make the program simpler, or name the"
            " queue, type, status or ids too"
        )


def _jq_directory() -> str:
    """The directory of the jq package. This process never loads it.

    Raises `FilterNotStarted` where it is not installed: some processors have no wheel of it.
    """
    found = importlib.util.find_spec("jq")
    if found is None or found.origin is None:
        raise FilterNotStarted(
            "jq is not installed where this server runs: `pip install jq` there, or ask without it"
        )
    return str(Path(found.origin).parent)


def _chunks(source: bytes, payloads: Sequence[str], outputs: bool) -> Iterator[bytes]:
    """A request in pieces: few writes, and no second copy of all payloads."""
    chunk = bytearray(REQUEST.pack(outputs, len(source), len(payloads)) + source)
    for payload in payloads:
        row = payload.encode()
        chunk += ROW.pack(len(row)) + row
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


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
