"""Clients of queue-ti."""

from collections.abc import AsyncIterator

import pytest
from conformance.client import Client, Wire
from conformance.site import Site

from .messages import Messages
from .users import Caller, admin_of


@pytest.fixture
async def api(site: Site, wire: Wire) -> AsyncIterator[Messages]:
    async with Client(site, wire) as client:
        yield Messages(client)


@pytest.fixture
async def nobody(site: Site, wire: Wire) -> AsyncIterator[Caller]:
    """A caller who has not logged in, at a site with users."""
    async with Client(site, wire) as client:
        yield Caller(client)


@pytest.fixture
async def admin(nobody: Caller) -> Caller:
    """The first user, logged in."""
    return await admin_of(nobody.client)
