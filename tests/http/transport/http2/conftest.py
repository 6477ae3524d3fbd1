"""A peer of the test's server, and the server once with each library."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from conformance.site import Site

from .differences import DIFFERENCES
from .peer import Peer
from .serving import Serving, serve

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Expect what is known of zttp to fail, and the table of it to name only tests."""
    ours = [item for item in items if item.path.parent == HERE]
    for item in ours:
        if reason := DIFFERENCES.get(item.name):
            item.add_marker(pytest.mark.xfail(reason=f"zttp: {reason}", strict=True))
    whole = not any(".py" in argument for argument in config.args)
    if ours and whole and (gone := DIFFERENCES.keys() - {item.name for item in ours}):
        raise pytest.UsageError(f"{HERE.name}/differences.py names no test: {sorted(gone)}")


@pytest.fixture(params=["h2", "zttp"])
def http2_engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def peer(site: Site) -> AsyncIterator[Peer]:
    async with await Peer.open(site.port) as peer:
        yield peer


@pytest.fixture
def serving(http2_engine: str) -> Serving:
    return partial(serve, http2_engine)
