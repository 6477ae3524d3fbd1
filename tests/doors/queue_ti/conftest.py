"""A client of queue-ti."""

from collections.abc import AsyncIterator

import pytest
from conformance.client import Client, Wire
from conformance.site import Site

from .messages import Messages


@pytest.fixture
async def api(site: Site, wire: Wire) -> AsyncIterator[Messages]:
    async with Client(site, wire) as client:
        yield Messages(client)
