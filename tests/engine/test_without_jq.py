"""An installation without jq, as on processors for which there is no wheel of it."""

import sys

import pytest

from zq.engine.jq.filter import JqFilter
from zq.model.errors import FilterNotStarted


async def test_a_filter_says_that_jq_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jq", None)  # nothing finds it then
    jq_filter = JqFilter(timeout=60)
    try:
        with pytest.raises(FilterNotStarted, match="pip install jq"):
            await jq_filter.check(".a")
    finally:
        await jq_filter.close()
