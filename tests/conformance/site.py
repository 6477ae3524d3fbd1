"""A data directory, its clock, and the server that runs on them."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blank import lay_out
from manual_clock import ManualClock
from store.rig import KIND, address_of, connections_to, run_beside, terminate, writing

from zq.config import Settings
from zq.runtime import Server
from zq.store.errors import StoreError


class Site:
    """Where servers of one test live, one after the other. Attributes follow the current one."""

    def __init__(self, root: Path, settings: dict[str, Any]) -> None:
        self.root = root
        self.clock = ManualClock()
        self._settings = settings
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        assert self._server is not None, "the server is stopped"
        return self._server

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def admin_url(self) -> str:
        """Of a site with the settings `no_admin=False, admin_port=0`."""
        assert self.server.admin_url is not None, "the site has no admin listener"
        return self.server.admin_url

    @property
    def now(self) -> int:
        return self.clock.now_ms()

    def build(self, **changes: Any) -> Server:
        """Another server for the same directory, not started yet."""
        # No drain unless a test asks for it: under a clock that stands still it would not end.
        settings: dict[str, Any] = {"root_dir": self.root, "port": 0, "drain": 0, "no_admin": True}
        # Requests that tests write by hand call the server q.
        settings["allow_host"] = ("q",)
        # A call of jq has 250 ms at first by default, and may wait longer for a processor.
        settings["filter_timeout"] = 60_000
        settings |= self._settings | changes
        if KIND == "postgres":
            settings["store"] = address_of(self.root)
        return Server(Settings.of(**settings), clock=self.clock, rng=random.Random(1))

    def run_sql(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement on the server's database, as another program would: its rows."""
        return run_beside(self.root, sql)

    def connections(self) -> int:
        """How many connections to a database the server has, if its store has any."""
        return connections_to(self.root) if KIND == "postgres" else 0

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Another program writes to the database: no tick comes to its end while this lasts."""
        if KIND == "postgres":
            with writing(self.root):
                yield
            return
        file = self.root / "zq.db"
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")

    async def start(self, **changes: Any) -> None:
        if KIND == "sqlite":
            lay_out(self.root / "zq.db")
        self._server = self.build(**changes)
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        self._server = None

    async def crash(self) -> None:
        """Go on with the files as they are at this moment, as after a kill of the process."""
        if KIND == "postgres":
            terminate(self.root)
            with contextlib.suppress(StoreError):
                await self.stop()
            self._server = None
            await self.start()
            return
        image = self.root.with_name(f"{self.root.name}-image")
        # Not copied by this process: closing a database file would drop the server's locks on it.
        copying = await asyncio.create_subprocess_exec("cp", "-r", self.root, image)
        assert await copying.wait() == 0
        await self.stop()
        self.root = image
        await self.start()

    async def restart(self, **changes: Any) -> None:
        """Stop, then start on the same directory. `changes` are settings of the new server."""
        await self.stop()
        await self.start(**changes)
