"""The clients of doors: what they say comes over both versions of HTTP, by an injected clock."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, JSON_HTTP2, Client, Wire
from conformance.site import Site

from .messages import Messages
from .queues import Queue
from .records import Records


@pytest.fixture(params=[JSON, JSON_HTTP2], ids=str)
def wire(request: pytest.FixtureRequest) -> Wire:
    chosen: Wire = request.param
    return chosen


@pytest.fixture
def settings() -> dict[str, Any]:
    """What the servers of a test are told; a test may put its own in place of it."""
    return {}


@pytest.fixture
async def site(tmp_path: Path, settings: dict[str, Any]) -> AsyncIterator[Site]:
    site = Site(tmp_path / "data", settings)
    await site.start()
    yield site
    await site.stop()


@pytest.fixture
async def api(site: Site, wire: Wire) -> AsyncIterator[Messages]:
    async with Client(site, wire) as client:
        yield Messages(client)


@pytest.fixture
async def queue(site: Site, wire: Wire) -> AsyncIterator[Queue]:
    """A queue topic that has no records yet."""
    async with Client(site, wire) as client:
        records = Records(client)
        made = await records.put("q", type="queue", durable=True)
        assert made["config"]["type"] == "queue"
        yield Queue(records, "q")
