"""`zq serve` in a process of its own, started the way a script or systemd starts it."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from conformance.client import JSON, Client, Wire
from conformance.site import Site
from conformance.streams import PATIENCE_S

Line = dict[str, Any]
"""One line of the log: timestamp, level, fields, target."""

SCRIPT = ("serve", "--port", "0", "--no-admin", "--log-format", "json")

WITH_ADMIN = ("serve", "--port", "0", "--admin-port", "0", "--log-format", "json")
"""The flags of a server with an admin listener, to be spawned without a root."""


def clean_environment() -> dict[str, str]:
    """This process's environment without anything that would set up a server."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ZQ_", "ZIZQ_", "NOTIFY_", "WATCHDOG_", "LISTEN_"))
    }


class ServerProcess:
    """A running `zq serve`. A task reads its log all the time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.log: list[Line] = []
        self.raw_log: list[str] = []
        self.errors = b""
        self._process = process
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def spawn(
        cls,
        root: Path | None,
        *flags: str,
        env: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
    ) -> Self:
        """Start it as scripts do, or without a root with nothing but these flags and variables.

        `before` is a command that runs the rest of its line, such as `ip netns exec`.
        """
        script = () if root is None else (*SCRIPT, "--root-dir", str(root))
        process = await asyncio.create_subprocess_exec(
            *before,
            *(sys.executable, "-m", "zq.cli", *script, *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=clean_environment() | dict(env or {}),
        )
        return cls(process)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        async for raw in self._process.stdout:
            text = raw.decode()
            async with self._news:
                self.raw_log.append(text.removesuffix("\n"))
                if text.startswith("{"):
                    self.log.append(json.loads(text))
                self._news.notify_all()
        self.errors = await self._process.stderr.read()
        async with self._news:
            self._news.notify_all()

    # What it says

    @property
    def messages(self) -> list[str]:
        return [line["fields"]["message"] for line in self.log]

    async def logged(self, message: str, **fields: str) -> Line:
        """The first line with this message and these fields; waits for it."""
        wanted = fields | {"message": message}

        def found() -> Line | None:
            return next(
                (line for line in self.log if wanted.items() <= line["fields"].items()), None
            )

        async with asyncio.timeout(3 * PATIENCE_S), self._news:
            await self._news.wait_for(lambda: found() is not None or self._reader.done())
        line = found()
        assert line is not None, (wanted, self.raw_log, self.errors.decode())
        return line

    async def listening(self) -> Self:
        """Wait until it accepts requests."""
        await self.logged("listening")
        return self

    async def starts(self) -> bool:
        """Whether it comes to accept requests. False once it has ended instead."""
        async with asyncio.timeout(3 * PATIENCE_S), self._news:
            await self._news.wait_for(lambda: "listening" in self.messages or self._reader.done())
        return "listening" in self.messages

    async def admin_url(self) -> str:
        """Where its admin listener is. The line that says so follows the primary listener's."""
        line = await self.logged("listening", api="admin")
        return f"http://{line['fields']['addr']}"

    # What it is

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        """The port that the log names, which scripts go by."""
        listening = next(line for line in self.log if line["fields"].get("api") == "primary")
        return int(listening["fields"]["addr"].rpartition(":")[2])

    def client(self, wire: Wire = JSON, host: str = "127.0.0.1") -> Client:
        """A client of the conformance suite, to be used as a context."""
        return Client(RemoteSite(self.port, host), wire)

    def children(self) -> list[int]:
        """The processes that it has started and that still live."""
        children: list[int] = []
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            # A thread may end meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                children += map(int, (task / "children").read_text().split())
        return children

    # How it ends

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    async def exited(self) -> int:
        """Wait for its end; the exit code, or minus the number of the signal that killed it."""
        async with asyncio.timeout(PATIENCE_S):
            code = await self._process.wait()
            await self._reader
        return code

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone. It may have ended already."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self.exited()


class RemoteSite(Site):
    """A server in another process, so that the conformance suite's client can talk to it."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        super().__init__(Path(), {})
        self._port = port
        self._host = host

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def now(self) -> int:
        return time.time_ns() // 1_000_000


@contextlib.asynccontextmanager
async def running(
    root: Path,
    *flags: str,
    env: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> AsyncIterator[ServerProcess]:
    """A server that accepts requests. It is killed at the end if it still runs."""
    server = await ServerProcess.spawn(root, *flags, env=env, before=before)
    try:
        yield await server.listening()
    finally:
        await server.kill()


async def refused(
    root: Path, *flags: str, env: Mapping[str, str] | None = None
) -> tuple[int, ServerProcess]:
    """The exit code of a server that is not to start, and what is left of it."""
    server = await ServerProcess.spawn(root, *flags, env=env)
    try:
        code = await server.exited()
    finally:
        await server.kill()
    assert "listening" not in server.messages
    return code, server
