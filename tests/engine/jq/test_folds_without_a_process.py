"""A batch rule that cannot be evaluated for want of a process is not refused for good."""

import tempfile
from pathlib import Path

import pytest

from zq.features.batches.engine_jq import JqFolds
from zq.model.errors import FilterNotStarted


async def test_a_batch_waits_for_a_process_and_is_not_called_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds = JqFolds(seconds=5)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FilterNotStarted, match="did not start"):
        await folds.check(("true", "."), ["1"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await folds.check(("true", "."), ["1"])
    await folds.close()
