"""A process that runs jq, and its pipes. `child.py` is its program."""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from zq.engine.jq import child as jq_child
from zq.engine.jq.child import REPLY, REQUEST, ROW
from zq.model.errors import FilterAborted

_PROGRAM = str(Path(jq_child.__file__).resolve())
_CHUNK_BYTES = 64 * 1024
"""The size of a write to the pipe. Linux buffers as much in a pipe."""


class JqProcess:
    """One process. It is useless after any error."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    @classmethod
    async def start(cls, directory: str, memory: int, cpu_seconds: int) -> Self:
        """Start it in `directory`. Its first reply comes without a request."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _PROGRAM),
            *(_jq_directory(), str(memory), str(cpu_seconds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=directory,
            env={},
            # An interrupt from the terminal is meant for the server only.
            start_new_session=True,
        )
        return cls(process)

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def ask(
        self, source: bytes, payloads: Sequence[str], *, outputs: bool = False
    ) -> tuple[bool, bytes]:
        """Whether the program compiles, and the reply of `child.py` or the reason why not.

        The reply has a byte a payload, or the outputs.
        """
        try:
            for chunk in _chunks(source, payloads, outputs):
                self._stdin.write(chunk)
                await self._stdin.drain()
        except ConnectionError:
            raise await self._death() from None
        return await self.reply()

    async def reply(self) -> tuple[bool, bytes]:
        try:
            compiles, length = REPLY.unpack(await self._stdout.readexactly(REPLY.size))
            return compiles, await self._stdout.readexactly(length)
        except asyncio.IncompleteReadError:
            raise await self._death() from None

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def reap(self) -> None:
        """Wait for the end of the killed process. The pipes close with it."""
        await self._process.wait()

    async def _death(self) -> FilterAborted:
        status = await self._process.wait()
        return FilterAborted(
            f"the filter's process ended by itself (status {status}), most likely because the"
            " program or a payload needs too much memory: make the program simpler, or name the"
            " queue, type, status or ids too"
        )


def _jq_directory() -> str:
    """The directory of the jq package. This process never loads it."""
    found = importlib.util.find_spec("jq")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the jq package is not installed", name="jq")
    return str(Path(found.origin).parent)


def _chunks(source: bytes, payloads: Sequence[str], outputs: bool) -> Iterator[bytes]:
    """A request in pieces: few writes, and no second copy of all payloads."""
    chunk = bytearray(REQUEST.pack(outputs, len(source), len(payloads)) + source)
    for payload in payloads:
        row = payload.encode()
        chunk += ROW.pack(len(row)) + row
        if len(chunk) >= _CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
