"""A Redis for tests of what moves from it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers.servers import redis as serving


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of its own."""
    directory: Path = tmp_path_factory.mktemp("redis")
    with serving(directory, ("--save", "")) as server:
        yield server.address
