"""A process that runs jq, and its pipes. `child.py` is its program."""

import asyncio
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from zq.engine.jq import child
from zq.engine.jq.child import REPLY, REQUEST, ROW
from zq.engine.piped_process import CHUNK, PipedProcess
from zq.model.errors import FilterAborted, FilterNotStarted


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
