"""A client, and a viewer that has seen its first snapshot."""

from collections.abc import AsyncIterator

import pytest
from conformance.client import JSON, Client
from conformance.site import Site

from .viewing import Watcher, watching


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    async with Client(site, JSON) as client:
        yield client


@pytest.fixture
async def watcher(site: Site) -> AsyncIterator[Watcher]:
    """A viewer that has seen its first snapshot, of nothing."""
    async with watching(site) as watcher:
        snapshot = await watcher.hear()
        assert snapshot["event"] == "job_snapshot"
        yield watcher
