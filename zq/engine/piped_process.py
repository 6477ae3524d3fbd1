"""A child process of Python, and its pipes."""

import asyncio
import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Self

CHUNK = 64 * 1024
"""The size of a write to the pipe. Linux buffers as much in a pipe."""


class PipedProcess:
    """One process. It is useless after any error. A subclass says what goes through its pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    @classmethod
    async def of(cls, program: ModuleType, *arguments: str, cwd: str | None = None) -> Self:
        """Start a module as a program that sees neither the environment nor installed packages."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", _path(program), *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=cwd,
            env={},
            # An interrupt from the terminal is meant for the server only.
            start_new_session=True,
        )
        return cls(process)

    @property
    def has_ended(self) -> bool:
        """True if it has ended by itself, or was killed. Its pipes may say so before its status."""
        return self._process.returncode is not None or self._stdin.is_closing()

    async def write(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Send pieces of about `CHUNK` bytes, each once there is room for it.

        Raises `ConnectionError` if it has ended.
        """
        for piece in pieces:
            if self._stdin.is_closing():
                # uvloop would raise a RuntimeError.
                raise ConnectionResetError("the process has ended")
            self._stdin.write(piece)
            await self._stdin.drain()

    async def read(self, size: int) -> bytes:
        """The next bytes that it sends. Raises `IncompleteReadError` at its end."""
        return await self._stdout.readexactly(size)

    def kill(self) -> None:
        """End it now. This is harmless if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def reap(self) -> int:
        """Wait for its end, with which the pipes close. Return its status."""
        return await self._process.wait()


def _path(program: ModuleType) -> str:
    return str(Path(str(program.__file__)).resolve())
