"""The contract of backends, over HTTP and with an engine in this process."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blank import lay_out

import zq
from zq.client.backend import Backend
from zq.client.connect import connect
from zq.client.formats import JSON, MSGPACK, Codec
from zq.testing import TestServer, server
from zq.testing.contract import BackendContract


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[TestServer]:
    lay_out(tmp_path / "data" / "zq.db")
    async with server(directory=tmp_path / "data") as running:
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
        lay_out(tmp_path / "data" / "zq.db")
        backend = connect(f"sqlite://{tmp_path}/data")
        yield backend
        await backend.close()


class TestEmbeddedInPrivate(BackendContract):
    @pytest.fixture
    def backend(self) -> Iterator[Backend]:
        with zq.App("sqlite://:memory:") as app:
            yield app.backend
