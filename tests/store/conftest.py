"""A store, or the tick alone, for any test of this folder."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from .rig import Rig, Ticker


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    ticker = Ticker(tmp_path / "zq.db")
    yield ticker
    ticker.close()


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data")
    await rig.open()
    yield rig
    await rig.close()
