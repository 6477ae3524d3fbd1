"""The clients of doors: what they say comes over both versions of HTTP, by an injected clock."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, JSON_HTTP2, Wire
from conformance.site import Site


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
