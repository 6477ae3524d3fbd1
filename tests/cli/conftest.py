"""A server for the commands for people, and an app on one for the tests of `zq worker`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from blank import lay_out
from conformance.site import Site

from zq.client.app import App
from zq.testing import server

from .shell import Shell


@pytest.fixture
async def shell(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shell]:
    """Commands in processes of their own, and a server in the test's: that starts at once.

    `@pytest.mark.parametrize("shell", [settings], indirect=True)` gives the server settings.
    """
    settings: dict[str, Any] = getattr(request, "param", {})
    lay_out(tmp_path / "data" / "zq.db")
    async with (
        server(directory=tmp_path / "data", **settings) as running,
        running.app() as app,
    ):
        yield Shell(running.url, app.backend, tmp_path)


@pytest.fixture
async def app(site: Site) -> AsyncIterator[App]:
    async with App(site.url) as app:
        yield app
