"""An instance without a door: its services, and the engine under them."""

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest
from manual_clock import ManualClock

from zq.config import Settings
from zq.instance import Instance
from zq.service.services import Services


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def instance(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Instance]:
    settings = Settings(root_dir=tmp_path, max_result=8)
    instance = Instance(settings, clock=clock, rng=Random(1))
    await instance.start()
    yield instance
    instance.engine.let_go()
    await instance.stop()


@pytest.fixture
def services(instance: Instance) -> Services:
    return instance.services
