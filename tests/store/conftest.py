"""A store, or the tick alone, for any test of this folder."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from zq.model.log import Bounds, HistoryOptions

from .rig import OPENERS, Rig, Ticker, make_ticker


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    ticker = make_ticker(tmp_path / "zq.db")
    yield ticker
    ticker.close()


@pytest.fixture(params=sorted(OPENERS))
def store_kind(request: pytest.FixtureRequest) -> str:
    """Each store in turn: what a test of this folder says holds for all of them."""
    kind: str = request.param
    return kind


@pytest.fixture
async def rig(tmp_path: Path, store_kind: str) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path / "data", kind=store_kind)
    await rig.open()
    yield rig
    await rig.close()


@pytest.fixture
async def recording(tmp_path: Path, store_kind: str) -> AsyncIterator[Rig]:
    """A store that keeps the history."""
    history = HistoryOptions("lab", Bounds(None, None, None))
    rig = Rig(tmp_path / "data", history=history, kind=store_kind)
    await rig.open()
    yield rig
    await rig.close()
