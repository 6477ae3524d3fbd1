"""The contract of backends, over HTTP and with an engine in this process."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import zq
from zq.client.backend import Backend
from zq.client.connect import connect
from zq.client.formats import JSON, MSGPACK, Codec
from zq.testing import TestServer, server
from zq.testing.contract import BackendContract


@pytest.fixture
async def running() -> AsyncIterator[TestServer]:
    async with server() as running:
        yield running


async def _over_http(url: str, codec: Codec) -> AsyncIterator[Backend]:
    backend = connect(url, codec=codec)
    yield backend
    await backend.blocking.close()
    await backend.close()


class TestHttpInJson(BackendContract):
    @pytest.fixture
    async def backend(self, running: TestServer) -> AsyncIterator[Backend]:
        async for backend in _over_http(running.url, JSON):
            yield backend


class TestHttpInMessagePack(BackendContract):
    @pytest.fixture
    async def backend(self, running: TestServer) -> AsyncIterator[Backend]:
        async for backend in _over_http(running.url, MSGPACK):
            yield backend


class TestEmbedded(BackendContract):
    @pytest.fixture
    async def backend(self, tmp_path: Path) -> AsyncIterator[Backend]:
        backend = connect(f"sqlite://{tmp_path}/data")
        yield backend
        await backend.close()


class TestEmbeddedInPrivate(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        with zq.App("sqlite://:memory:") as app:
            yield app.backend
