"""A peer of the test's server."""

from collections.abc import AsyncIterator

import pytest
from conformance.site import Site

from .peer import Peer


@pytest.fixture
async def peer(site: Site) -> AsyncIterator[Peer]:
    async with await Peer.open(site.port) as peer:
        yield peer
