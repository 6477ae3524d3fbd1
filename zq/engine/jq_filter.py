"""jq programs over payloads, run by a process of its own: see `jq_child` for how it is confined.

The jq library holds the GIL while a program runs, and a program cannot be stopped. A process can:
it is killed when a call takes too long, when its caller goes away, or at the end. The next call
starts another (30 ms).
"""

import asyncio
import contextlib
import importlib.util
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from zq.engine import jq_child
from zq.engine.jq_child import REPLY, REQUEST, ROW
from zq.model.errors import FilterAborted, InvalidFilter

MIB = 1024 * 1024

_PROGRAM = str(Path(jq_child.__file__).resolve())
_START_TIMEOUT_S = 10
_CHUNK_BYTES = 64 * 1024
"""What is written to the pipe at a time; as much as Linux lets wait in it."""


class JqFilter:
    """Decides which payloads a jq program matches. One call runs at a time, the others wait.

    `timeout` is in seconds from the moment a call has its turn, `memory` in bytes of address space
    for the process, of which 15 MiB go to the interpreter, `rows` the most payloads of a call.
    """

    def __init__(self, *, timeout: float, memory: int = 256 * MIB, rows: int = 1000) -> None:
        self._timeout = timeout
        self._memory = memory
        self._rows = rows
        self._turn = asyncio.Lock()
        self._child: _Child | None = None
        self._reaping: set[asyncio.Task[None]] = set()
        self._closed = False

    async def check(self, program: str) -> None:
        """Raise InvalidFilter, whose message says why and where, if `program` does not compile."""
        await self._ask(program, ())

    async def matches(self, program: str, payloads: Sequence[str]) -> list[bool]:
        """Whether `program` matches each of `payloads`, which are JSON texts.

        It matches if any output is neither null nor false. A runtime error ends the outputs of that
        payload: those before it count. A number that the program only compares or passes on keeps
        all its digits; arithmetic is in doubles, exact to 2^53. The environment is empty, there is
        no further input, no module, and local time is UTC.

        Raises InvalidFilter, or FilterAborted if the call took too long or too much memory.
        """
        if len(payloads) > self._rows:
            raise ValueError(f"{len(payloads)} payloads in a call; {self._rows} are the most")
        verdicts = await self._ask(program, payloads)
        return [verdict == 1 for verdict in verdicts]

    async def close(self) -> None:
        """End the process. Calls that are under way or waiting raise FilterAborted."""
        self._closed = True
        if self._child is not None:
            self._child.kill()
        async with self._turn:
            self._drop_child()
        await asyncio.gather(*self._reaping)

    async def _ask(self, program: str, payloads: Sequence[str]) -> bytes:
        source = _encode(program)
        async with self._turn:
            try:
                child = await self._ready_child()
                compiles, body = await self._timed(child, source, payloads)
            except BaseException:
                # Also when the caller is cancelled: a reply to nobody would answer the next call.
                self._drop_child()
                raise
        if not compiles:
            raise _refusal(body.decode())
        return body

    async def _timed(
        self, child: "_Child", source: bytes, payloads: Sequence[str]
    ) -> tuple[bool, bytes]:
        try:
            async with asyncio.timeout(self._timeout):
                return await child.ask(source, payloads)
        except TimeoutError:
            raise FilterAborted(
                f"the filter took longer than {self._timeout:g} s: name the queue, type, status or"
                " ids too, make the program cheaper, or start the server with a longer"
                " --filter-timeout"
            ) from None

    async def _ready_child(self) -> "_Child":
        self._refuse_if_closed()
        if self._child is None or self._child.has_ended:
            self._drop_child()
            await self._start_child()
            self._refuse_if_closed()
        assert self._child is not None
        return self._child

    async def _start_child(self) -> None:
        try:
            # Nothing can be created in the directory once it is gone, nor is it left behind.
            with tempfile.TemporaryDirectory(prefix="zq-jq-") as empty:
                self._child = await _Child.start(empty, self._memory, math.ceil(self._timeout))
                async with asyncio.timeout(_START_TIMEOUT_S):
                    await self._child.reply()
        except OSError as error:  # TimeoutError is one
            raise FilterAborted(f"the filter's process did not start: {error!r}") from error

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise FilterAborted("the server is stopping")

    def _drop_child(self) -> None:
        if self._child is None:
            return
        self._child.kill()
        # A task, because its caller may be cancelled again while the process ends.
        reaping = asyncio.create_task(self._child.reap())
        self._reaping.add(reaping)
        reaping.add_done_callback(self._reaping.discard)
        self._child = None


class _Child:
    """A process that runs `jq_child`, and its pipes. After any error it is of no more use."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    @classmethod
    async def start(cls, directory: str, memory: int, cpu_seconds: int) -> "_Child":
        """Start it in `directory`. Its first reply comes unasked."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _PROGRAM),
            *(_jq_directory(), str(memory), str(cpu_seconds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=directory,
            env={},
            # An interrupt from the terminal is for the server alone.
            start_new_session=True,
        )
        return cls(process)

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def ask(self, source: bytes, payloads: Sequence[str]) -> tuple[bool, bytes]:
        """Whether the program compiles, and a byte a payload or the reason. See `jq_child`."""
        try:
            for chunk in _chunks(source, payloads):
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
    """Where the jq package is. It is never loaded into this process."""
    found = importlib.util.find_spec("jq")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the jq package is not installed", name="jq")
    return str(Path(found.origin).parent)


def _encode(program: str) -> bytes:
    """`program` as jq can take it: UTF-8 that no NUL cuts short."""
    if "\0" in program:
        raise _refusal("the program contains a NUL character")
    try:
        return program.encode()
    except UnicodeEncodeError:
        raise _refusal("the program is not valid Unicode") from None


def _refusal(reason: str) -> InvalidFilter:
    return InvalidFilter(f"invalid filter: {reason}")


def _chunks(source: bytes, payloads: Sequence[str]) -> Iterator[bytes]:
    """A request, cut where that costs few writes and no second copy of all payloads."""
    chunk = bytearray(REQUEST.pack(len(source), len(payloads)) + source)
    for payload in payloads:
        row = payload.encode()
        chunk += ROW.pack(len(row)) + row
        if len(chunk) >= _CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)
