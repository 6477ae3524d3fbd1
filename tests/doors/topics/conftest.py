"""A topic whose records are jobs, and a tick without a server."""

from collections.abc import AsyncIterator

import pytest
from conformance.client import Client, Wire
from conformance.site import Site
from store.conftest import rig, store_kind, ticker

from .queues import Queue
from .records import Records

__all__ = ["queue", "rig", "store_kind", "ticker"]


@pytest.fixture
async def queue(site: Site, wire: Wire) -> AsyncIterator[Queue]:
    """A queue topic that has no records yet."""
    async with Client(site, wire) as client:
        records = Records(client)
        made = await records.put("q", type="queue", durable=True)
        assert made["config"]["type"] == "queue"
        yield Queue(records, "q")
