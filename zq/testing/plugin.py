"""Fixtures for pytest, which finds them by itself.

zq_server    a real server in the test's event loop, on a temporary directory
             ``await zq_server.advance(seconds)`` makes retries and schedules fall due
zq_app       a `zq.App` for that server
zq_worker    ``async with zq_worker(app, concurrency=4) as worker:`` runs a worker in the block
zq_embedded  a `zq.App` with an engine of its own; it also works in tests that are not coroutines

The fixtures with a server are for coroutine tests. They need pytest-asyncio (or pytest-aiohttp,
which brings it).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

pytest_asyncio: Any
try:
    import pytest_asyncio
except ImportError:
    pytest_asyncio = None


def async_fixture(function: Any) -> Any:
    """A fixture that is a coroutine. Without pytest-asyncio, a test that asks for it fails."""
    if pytest_asyncio is not None:
        return pytest_asyncio.fixture(function)

    def missing() -> None:
        pytest.fail(f"{function.__name__} is for coroutine tests: pip install pytest-asyncio")

    return pytest.fixture(name=function.__name__)(missing)


if TYPE_CHECKING:
    from zq.client.app import App
    from zq.client.worker.worker import Worker
    from zq.testing.serving import TestServer

Working = Callable[..., AbstractAsyncContextManager["Worker"]]


@async_fixture
async def zq_server() -> AsyncIterator[TestServer]:
    """A running server, whose clock can be moved forward."""
    from zq.testing.serving import server

    async with server() as running:
        yield running


@async_fixture
async def zq_app(zq_server: TestServer) -> AsyncIterator[App]:
    """An app for the server."""
    async with zq_server.app() as app:
        yield app


@pytest.fixture
def zq_worker() -> Working:
    """Makes workers. Each works within its ``async with``."""
    return _working


@pytest.fixture
def zq_embedded() -> Iterator[App]:
    """An app whose engine runs in this process, on a temporary directory."""
    from zq.client.app import App

    with App("sqlite://:memory:") as app:
        yield app


@asynccontextmanager
async def _working(app: Any, **options: Any) -> AsyncIterator[Worker]:
    """Run a worker. `app` is a `zq.App`; `options` are those of `zq.Worker`."""
    from zq.client.worker.worker import Worker

    worker = Worker(app, **options)
    life = asyncio.ensure_future(worker.run())
    try:
        yield worker
    finally:
        await worker.stop(timeout=1)
        await life
