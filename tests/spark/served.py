"""zq servers for Spark to talk to, in threads of their own."""

import asyncio
import json
import threading
import urllib.request
from collections.abc import Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from conformance.streams import PATIENCE_S
from store.rig import NOW, Ticker

from zq.config import Settings
from zq.model.commands import Fail, Succeed
from zq.model.log import Bounds, HistoryOptions
from zq.model.settling import Failure
from zq.runtime import Server

DAY_MS = 86_400_000


class Served:
    """A server over a directory, and short ways to do things to it."""

    def __init__(self, root: Path, **settings: Any) -> None:
        usual = {
            "history": 36_500 * DAY_MS,
            "device": "lab",
            "drain": 0,
            "port": 0,
            "no_admin": True,
        }
        self._settings: dict[str, Any] = {"root_dir": root, **usual, **settings}
        self.server: Server
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()
        self._stop: asyncio.Event

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def port(self) -> int:
        return self.server.port

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """One request; the document that answers it."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def cancel(self, count: int, queue: str = "q") -> None:
        """Add so many records to the history: of jobs that are cancelled while they wait."""
        jobs = [{"queue": queue, "type": "t", "payload": n} for n in range(count)]
        self.call("POST", "/jobs/bulk", {"jobs": jobs})
        self.call("POST", f"/jobs/cancel?queue={queue}")

    def do(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self.server = Server(Settings.of(**self._settings))
        await self.server.start()
        self._started.set()
        await self._stop.wait()
        await self.server.stop()


@contextmanager
def served(root: Path, **settings: Any) -> Iterator[Served]:
    server = Served(root, **settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def past(root: Path, ticks: int, per_tick: int, device: str = "lab", start: int = NOW) -> None:
    """Let a directory have a history: a tick ends so many jobs, and every fifth fails.

    Queues and types alternate; each tick is a second after the one before.
    """
    root.mkdir(parents=True, exist_ok=True)
    with closing(Ticker(root / "zq.db", history=HistoryOptions(device, Bounds()))) as ticker:
        for tick in range(ticks):
            ticker.now = start + tick * 1_000
            for number in range(per_tick):
                ticker.store(1, queue=f"q{number % 3}", type=f"t{number % 2}")
            taken = ticker.take(per_tick)
            ticker.now += 400
            failed = taken[::5]
            ticker.run(
                Succeed([key for key in taken if key not in failed]),
                *(Fail(key, Failure("boom é", error_type="E", kill=True)) for key in failed),
            )
