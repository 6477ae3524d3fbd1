"""The process that runs jq filters never outlives its server."""

import asyncio
import os
import select
import signal
from pathlib import Path
from typing import Self

import pytest
from conformance.client import Client
from conformance.streams import PATIENCE_S

from .server import ServerProcess, running

ENDLESS = "last(range(1; 1e18))"


class FilterProcess:
    """The child that a server starts for its first filter."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)  # stays this process's, even when the pid is used again

    @classmethod
    async def of(cls, server: ServerProcess, client: Client) -> Self:
        await client.enqueue(payload={"n": 1})
        assert server.children() == []
        assert await client.count(filter=".n == 1") == 1
        (pid,) = server.children()
        return cls(pid)

    @property
    def ticks(self) -> int:
        """Processor time that its programs have taken, in ticks of the kernel's clock."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11])

    def ended(self) -> bool:
        """Wait for its end, whoever its parent is by now."""
        readable, _, _ = select.select([self._handle], [], [], PATIENCE_S)
        os.close(self._handle)
        return bool(readable)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_it_ends_with_an_idle_server(number: signal.Signals, tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        child = await FilterProcess.of(server, client)
        server.signal(number)
        assert await server.exited() in (0, -signal.SIGKILL)
        assert child.ended()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_it_ends_with_the_server_in_the_middle_of_a_program(
    number: signal.Signals, tmp_path: Path
) -> None:
    async with (
        running(tmp_path, "--filter-timeout", "1h", "--read-timeout", "1h") as server,
        server.client() as client,
    ):
        child = await FilterProcess.of(server, client)
        before = child.ticks
        call = asyncio.create_task(client.count(filter=ENDLESS))
        async with asyncio.timeout(PATIENCE_S):
            while child.ticks < before + 10:
                await client.get("/health")
        server.signal(number)
        assert await server.exited() in (0, -signal.SIGKILL)
        assert child.ended()
        await asyncio.wait([call])
        assert call.exception() is not None
