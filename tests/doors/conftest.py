"""The clients of doors: what they say comes over both versions of HTTP, by an injected clock."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conformance.client import JSON, JSON_HTTP2, Wire
from conformance.site import Site
from tiers import by_name, is_left_open, usual_of

WIRES = (JSON, JSON_HTTP2)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test one of the wires by its name: what a door does lies behind them."""
    if is_left_open(metafunc, "wire"):
        chosen = (by_name(metafunc, WIRES),)
        metafunc.parametrize("wire", usual_of(metafunc, chosen, WIRES), ids=str, indirect=True)


@pytest.fixture
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
