"""A real server in the test's event loop, with a temporary directory and a clock for tests."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from zq.client.app import App
from zq.client.embedded.engine import TravelClock
from zq.config import Settings
from zq.runtime import Server

SETTLE_TURNS = 5
"""In this many turns of the event loop, the work that a timer starts gets under way."""


class TestServer:
    """One data directory, and the server that runs on it now."""

    __test__ = False  # pytest would take the class for tests

    def __init__(self, directory: Path, settings: dict[str, Any]) -> None:
        self.directory = directory
        self.clock = TravelClock()
        usual = {"root_dir": directory, "port": 0, "no_admin": True, "drain": 0}
        self._settings = {**usual, **settings}
        self._server: Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address on which the server listens. It is the same after a restart."""
        return self._running.url

    def app(self, **options: Any) -> App:
        """Make an app for this server. `options` are those of `zq.App`."""
        return App(self.url, **options)

    async def start(self) -> None:
        """Start on the directory, at the same port as before."""
        settings = {**self._settings, "port": self._port or self._settings["port"]}
        server = Server(Settings.of(**settings), clock=self.clock, rng=Random(1))
        await server.start()
        self._server, self._port = server, server.port

    async def stop(self) -> None:
        """Stop as a signal would: streams end and their jobs are returned."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def restart(self) -> None:
        """Stop, and start again on the same directory. Workers and clients connect again."""
        await self.stop()
        await self.start()

    def drop_streams(self) -> None:
        """End every take stream, as a network failure would. Workers connect again."""
        self._running.engine.streams.end_all()

    async def advance(self, seconds: float) -> None:
        """Move the server's clock forward by seconds. Retries, schedules and leases fall due."""
        self.clock.advance(round(seconds * 1000))
        for _ in range(SETTLE_TURNS):
            await asyncio.sleep(0)
        await self._running.services.admin.ping()

    @property
    def _running(self) -> Server:
        if self._server is None:
            raise RuntimeError("the server is stopped: start() it first")
        return self._server


@asynccontextmanager
async def server(*, directory: Path | None = None, **settings: Any) -> AsyncIterator[TestServer]:
    """A running server: ``async with zq.testing.server() as running, running.app() as app:``.

    At the end it is stopped. Without a `directory` it has a temporary one, which is removed.
    `settings` are those of `zq serve`, under the names of `zq.config.Settings`.
    """
    with tempfile.TemporaryDirectory(prefix="zq-test-") as private:
        running = TestServer(directory or Path(private), settings)
        await running.start()
        try:
            yield running
        finally:
            await running.stop()
