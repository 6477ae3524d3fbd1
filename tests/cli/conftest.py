"""A server for the commands for people."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from process.server import running

import zq

from .shell import Shell


@pytest.fixture
async def shell(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shell]:
    """`@pytest.mark.parametrize("shell", [flags], indirect=True)` gives the server flags."""
    flags: tuple[str, ...] = getattr(request, "param", ())
    async with (
        running(tmp_path / "data", *flags) as server,
        zq.App(f"http://127.0.0.1:{server.port}") as app,
    ):
        yield Shell(server, app.backend, tmp_path)
