"""`zq worker` in a process of its own, the app that it runs, and the producer's side of the app."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from conformance.streams import PATIENCE_S
from process.server import clean_environment

from zq.client.app import App

SHOP = """\
    import asyncio, time
    import zq

    app = zq.App(defaults={"max_attempts": 1})

    @app.task(queue="mail")
    async def quick(n: int) -> int:
        return n + 1

    @app.task(queue="mail")
    async def slow(seconds: float) -> str:
        print("begun", flush=True)
        await asyncio.sleep(seconds)
        return "done"

    @app.task(queue="stubborn")
    def stubborn() -> None:
        print("begun", flush=True)
        time.sleep(3600)

    @app.task(queue="stubborn")
    async def deaf() -> None:
        print("begun", flush=True)
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                print("swallowed", flush=True)

    @app.task(queue="stubborn")
    async def blocking() -> None:
        print("begun", flush=True)
        time.sleep(3600)
"""


class WorkerProcess:
    """A running `zq worker`; its lines can be awaited."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self, text: str) -> dict[str, Any]:
        """Wait for a line with this text; the fields that it has, if it is one of the log."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            async for raw in self._process.stdout:
                if text in raw.decode():
                    return json.loads(raw)["fields"] if raw.startswith(b"{") else {}
        raise AssertionError(f"it ended without a word of {text!r}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def threads(self) -> set[Path]:
        """Where the kernel tells of each of its threads."""
        return set(Path(f"/proc/{self._process.pid}/task").iterdir())

    async def ended(self) -> tuple[int, str]:
        """Its exit code and what else it said."""
        async with asyncio.timeout(PATIENCE_S):
            output, errors = await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode, (output + errors).decode()


@contextlib.asynccontextmanager
async def worker(
    directory: Path,
    url: str,
    *words: str,
    source: str = SHOP,
    app: str = "shop:app",
    log: Sequence[str] = ("--log-format", "json"),
) -> AsyncIterator[WorkerProcess]:
    """`zq worker shop:app` in a directory that has shop.py."""
    (directory / "shop.py").write_text(dedent(source))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "zq.cli", "worker", *filter(None, [app]), *log, *words),
        cwd=directory,
        env=clean_environment() | {"ZQ_URL": url, "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield WorkerProcess(process)
    finally:
        if process.returncode is None:
            # All of them: a process that it has started holds the pipes open as well.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


def shop(app: App) -> Any:
    """The producer's side of the same app."""

    @app.task(queue="mail")
    async def quick(n: int) -> int:
        raise NotImplementedError

    @app.task(queue="mail", max_attempts=1)
    async def slow(seconds: float) -> str:
        raise NotImplementedError

    @app.task(queue="stubborn")
    def stubborn() -> None: ...

    @app.task(queue="stubborn")
    async def deaf() -> None: ...

    @app.task(queue="stubborn")
    async def blocking() -> None: ...

    return quick, slow, stubborn


def app_url(app: App) -> str:
    backend: Any = app.backend
    url: str = backend._address.url
    return url
