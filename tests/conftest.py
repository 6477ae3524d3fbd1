"""A running server for any test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from conformance.site import Site
from hypothesis import settings

# How long an example takes says nothing on a machine that others use too.
settings.register_profile("zq", deadline=None)
settings.load_profile("zq")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "settings(**overrides): settings of the test's server")


@pytest.fixture
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """A started server on a directory of its own. `@pytest.mark.settings(…)` changes settings."""
    marker = request.node.get_closest_marker("settings")
    site = Site(tmp_path / "data", dict(marker.kwargs) if marker else {})
    await site.start()
    yield site
    await site.stop()
