"""A program on a terminal of its own. A test reads the screen and types keys."""

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence

from conformance.streams import PATIENCE_S
from process.server import clean_environment


class Terminal:
    """What a program has drawn, with all that controls the terminal, and its keyboard."""

    def __init__(self, leader: int, process: Process) -> None:
        self.drawn = b""
        self.process = process
        self._leader = leader
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(leader, self._read)

    def _read(self) -> None:
        try:
            self.drawn += os.read(self._leader, 65_536)
        except OSError:  # nobody has the other end any more
            asyncio.get_running_loop().remove_reader(self._leader)
        self._news.set()

    async def shows(self, text: str) -> None:
        """Wait until the program has drawn a text since `forget`."""
        async with asyncio.timeout(PATIENCE_S):
            while text.encode() not in self.drawn:
                self._news.clear()
                await self._news.wait()

    def forget(self) -> None:
        """Look at what is drawn from now on."""
        self.drawn = b""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._leader, keys.encode())

    async def ended(self) -> int:
        """Wait for the end of the program; its exit code."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def terminal(
    *command: str, size: Sequence[int] = (30, 120), **variables: str
) -> AsyncIterator[Terminal]:
    """Run a program on a terminal with so many rows and columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    process = await asyncio.create_subprocess_exec(
        *command,
        env=clean_environment() | {"TERM": "xterm-256color"} | variables,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    try:
        yield Terminal(leader, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(leader)
        os.close(leader)
