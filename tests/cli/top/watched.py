"""A server with jobs for `zq top`, and the texts that its display shows."""

import asyncio
import contextlib
import json
import os
import shutil
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from conformance.streams import PATIENCE_S
from process.server import ServerProcess, clean_environment
from textual.pilot import Pilot
from textual.widgets import Static

from zq.client.http.address import Address
from zq.operators.admin.cli.app import TopApp
from zq.operators.admin.cli.table import JobTable

ORIGINAL = os.environ.get("ZIZQ") or shutil.which("zizq")
"""The original server, whose display and whose listener ours have to suit."""

HOUR_MS = 3_600_000

HOPS = 5
"""Messages that follow one another from a key to what it draws: key, action, bubbling, drawing."""


class Watched(NamedTuple):
    """A server: its API, its admin listener, and a way to send it requests."""

    url: str
    admin_url: str
    session: aiohttp.ClientSession

    async def post(self, path: str, document: Any) -> Any:
        """The answer to a POST."""
        async with self.session.post(self.url + path, json=document) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def fill(self, count: int, **fields: Any) -> list[str]:
        """Enqueue jobs of the queues q0, q1 and q2; their ids in order."""
        jobs = [
            {"queue": f"q{n % 3}", "type": f"type-{n}", "payload": {"n": n}, **fields}
            for n in range(count)
        ]
        return [job["id"] for job in (await self.post("/jobs/bulk", {"jobs": jobs}))["jobs"]]

    async def die(self, queue: str, messages: list[str]) -> None:
        """Let a job die with each of these messages, which are the payloads too."""
        jobs = [{"queue": queue, "type": "t", "payload": message} for message in messages]
        await self.post("/jobs/bulk", {"jobs": jobs})
        claim = {"max": len(jobs), "lease_ms": 60_000, "holder": "w"}
        for job in (await self.post(f"/queues/{queue}/claim", claim))["jobs"]:
            failure = {"message": job["payload"], "kill": True, "lease": job["lease"]}
            await self.post(f"/jobs/{job['id']}/failure", failure)

    async def stored(self) -> int:
        """How many jobs there are."""
        async with self.session.get(f"{self.url}/jobs/count") as answer:
            count: int = (await answer.json())["count"]
            return count

    @contextlib.asynccontextmanager
    async def holding(self, count: int) -> AsyncIterator[list[str]]:
        """A worker that has so many jobs in flight; their ids in order."""
        async with self.session.get(f"{self.url}/jobs/take?prefetch={count}") as stream:
            held: list[str] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(held) < count:
                    line = (await stream.content.readline()).strip()
                    if line:
                        held.append(json.loads(line)["id"])
            yield held

    def app(self) -> TopApp:
        """A display that is drawn five times a second: a pilot waits at each key until it rests."""
        return TopApp(Address(self.admin_url), 0.2)


@contextlib.asynccontextmanager
async def watched(
    root: Path, admin_port: str = "0", flags: tuple[str, ...] = ()
) -> AsyncIterator[Watched]:
    """A server of ours. It waits for no disk, since one that is busy would be a finding."""
    flags += ("--port", "0", "--admin-port", admin_port, "--log-format", "json")
    flags += ("--default-commit-mode", "buffered")
    server = await ServerProcess.spawn(None, "serve", *flags, "--root-dir", str(root))
    try:
        await server.listening()
        urls: dict[str, str] = {}
        while len(urls) < 2:
            await asyncio.sleep(0.01)
            urls = {
                line["fields"]["api"]: f"http://{line['fields']['addr']}"
                for line in server.log
                if "api" in line["fields"]
            }
        async with aiohttp.ClientSession() as session:
            yield Watched(urls["primary"], urls["admin"], session)
    finally:
        await server.kill()


@contextlib.asynccontextmanager
async def original(root: Path) -> AsyncIterator[Watched]:
    """The original server."""
    assert ORIGINAL is not None
    flags = ("--port", "0", "--admin-port", "0", "--log-format", "json", "--root-dir", str(root))
    process = await asyncio.create_subprocess_exec(
        *(ORIGINAL, "serve", *flags),
        env=clean_environment(),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
    )
    assert process.stdout is not None
    try:
        urls: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_S):
            while len(urls) < 2:
                fields = json.loads(await process.stdout.readline())["fields"]
                if "api" in fields:
                    urls[fields["api"]] = f"http://{fields['addr']}"
        async with aiohttp.ClientSession() as session:
            yield Watched(urls["primary"], urls["admin"], session)
    finally:
        process.kill()
        await process.wait()


class Display:
    """A running display under a pilot."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def head(self) -> str:
        """The lines above the table."""
        return str(self.app.main.query_one("#head", Static).content)

    @property
    def keys(self) -> str:
        """The last line."""
        return str(self.app.main.query_one("#keys", Static).content)

    @property
    def details(self) -> str:
        """What is shown of the job under the cursor."""
        details = self.app.main.query_one("#details", Static)
        return str(details.content) if details.display else ""

    @property
    def rows(self) -> list[list[str]]:
        """The words of each row of the table that has a job."""
        table = self.app.main.query_one(JobTable)
        lines = [table.render_line(y).text for y in range(1, table.size.height)]
        return [line[1:].split() for line in lines if line.strip()]

    @property
    def heading(self) -> str:
        """The names of the columns."""
        return self.app.main.query_one(JobTable).render_line(0).text

    @property
    def cursor(self) -> str:
        """The id of the job with the mark of the cursor, or nothing while none has it."""
        table = self.app.main.query_one(JobTable)
        lines = [table.render_line(y).text for y in range(1, table.size.height)]
        marked = [line[1:].split()[0] for line in lines if line.startswith(">")]
        assert len(marked) <= 1, marked
        return "".join(marked)

    async def press(self, *keys: str) -> None:
        """Press keys, each after all that the one before has led to within the display.

        A pilot alone takes a process that is given no processor for one that is at rest.
        """
        for key in keys:
            await self.pilot.press(key)
            for _ in range(HOPS):
                await self.pilot.pause(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the display shows something."""
        began = time.monotonic()
        while not condition():
            shown = (self.head, self.rows, self.keys)
            assert time.monotonic() - began < PATIENCE_S, shown
            await self.pilot.pause(0.01)

    async def at(self, job_id: str) -> None:
        """Wait until the cursor is on a job."""
        await self.until(lambda: self.cursor == job_id)


@contextlib.asynccontextmanager
async def display(
    server: Watched, width: int = 120, height: int = 30, tab: str = "5"
) -> AsyncIterator[Display]:
    """A display of a server, once it shows what the server has; by default the list Ready."""
    app = server.app()
    async with app.run_test(size=(width, height)) as pilot:
        shown = Display(app, pilot)
        await shown.until(lambda: "connected" in shown.head and "not connected" not in shown.head)
        if tab:
            await shown.until(lambda: f"{tab} " in shown.head.splitlines()[-1])
            await shown.press(tab)
        yield shown
