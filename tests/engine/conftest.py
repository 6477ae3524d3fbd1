"""An engine with its services, without a door, on a clock that stands still."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from blank import lay_out
from manual_clock import ManualClock

from zq.config import Settings
from zq.instance import Instance


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def instance(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Instance]:
    lay_out(tmp_path / "zq.db")
    instance = Instance(Settings(root_dir=tmp_path), clock=clock, rng=Random(1))
    await instance.start()
    yield instance
    instance.engine.let_go()
    await instance.stop()
