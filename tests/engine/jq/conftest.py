"""A filter for each test, and an account of the processes that were there before."""

import os
from collections.abc import AsyncIterator
from importlib.util import find_spec

import pytest

from zq.engine.jq.filter import JqFilter

from .processes import children, strangers


@pytest.fixture(autouse=True)
def only_with_jq() -> None:
    """Leave these tests out where jq is not installed: not every processor has a wheel of it."""
    if find_spec("jq") is None:
        pytest.skip("jq is not installed")


@pytest.fixture
async def jq_filter() -> AsyncIterator[JqFilter]:
    jq_filter = JqFilter(timeout=600)
    yield jq_filter
    await jq_filter.close()


@pytest.fixture(autouse=True)
def note_strangers() -> None:
    """Leave out what other tests have started: multiprocessing keeps a helper of its own."""
    strangers.clear()
    strangers.update(children(os.getpid()))
