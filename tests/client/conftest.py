"""Backends on the test's server: both transports, both formats."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from zq.client.backend import Backend, TakeStream
from zq.client.formats import JSON, MSGPACK
from zq.client.http import HttpBackend
from zq.client.sync import run
from zq.client.transport import Address
from zq.client.values import Delivery

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
        stream = await backend.take(["q"], count)
        streams.append(stream)
        found: list[Delivery] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                found += await stream.deliveries()
        return found

    yield take
    for stream in streams:
        await stream.close()
