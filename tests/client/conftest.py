"""Backends on the test's server: both transports, both formats."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.client.app import App
from zq.client.backend import Backend, TakeStream, run
from zq.client.formats import JSON, MSGPACK
from zq.client.http.address import Address
from zq.client.http.backend import HttpBackend
from zq.client.values import Delivery, TakeRequest
from zq.client.worker.worker import Worker
from zq.model.clock import SystemClock

T = TypeVar("T")

Take = Callable[[int], Coroutine[Any, Any, list[Delivery]]]


@dataclass
class Caller:
    """A backend of one kind; `await call(backend.verb(…))` works for either."""

    backend: Backend
    blocks: bool

    async def __call__(self, verb: Coroutine[Any, Any, T]) -> T:
        # The server lives in this event loop: what blocks must do so elsewhere.
        return await (asyncio.to_thread(run, verb) if self.blocks else verb)


@pytest.fixture(params=["json", "msgpack", "json-blocking", "msgpack-blocking"])
async def call(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    kind: str = request.param
    codec = MSGPACK if kind.startswith("msgpack") else JSON
    backend = HttpBackend(Address(site.url, codec=codec))
    blocks = kind.endswith("blocking")
    yield Caller(backend.blocking if blocks else backend, blocks)
    await backend.blocking.close()
    await backend.close()


@pytest.fixture
async def backend(site: Site) -> AsyncIterator[HttpBackend]:
    backend = HttpBackend(Address(site.url))
    yield backend
    await backend.close()


@pytest.fixture
async def take(backend: HttpBackend) -> AsyncIterator[Take]:
    """Takes so many jobs of the queue `q`, which are held until the test ends."""
    streams: list[TakeStream] = []

    async def take(count: int) -> list[Delivery]:
        stream = await backend.take(TakeRequest(("q",), count))
        streams.append(stream)
        found: list[Delivery] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                found += [each for each in await stream.deliveries() if isinstance(each, Delivery)]
        return found

    yield take
    for stream in streams:
        await stream.close()


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Site]:
    """A server that goes by the real clock."""
    site = Site(tmp_path / "live", {})
    site.clock = SystemClock()  # type: ignore[assignment]
    await site.start()
    yield site
    await site.stop()


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    """An app on the test's server, whose clock only tests move. Retries come at once."""
    async with App(site.url) as app:
        yield app


@pytest.fixture
async def live_app(live: Site) -> AsyncIterator[App]:
    async with App(live.url) as app:
        yield app


@asynccontextmanager
async def working(app: App, **options: Any) -> AsyncIterator[Worker]:
    """A worker that runs for as long as the context lasts."""
    worker = Worker(app, **options)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        await worker.stop(0)
        await task
