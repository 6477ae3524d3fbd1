"""The counted writes of a tick are the pages in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.pages import KINDS, Kind, measured, owners, pages_written
from bench.ticks import Ticks, new_job
from zq.store.sqlite import upkeep


def test_every_page_in_the_log_is_counted_under_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    ticks = Ticks(path)
    ticks.store([new_job(0, 1)])
    upkeep.shrink_wal(ticks.connection)
    assert pages_written(path) == []
    ticks.run(ticks.enqueue([new_job(1, 1)]))
    written = pages_written(path)
    held = ticks.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
    names = owners(ticks.connection)
    ticks.connection.close()
    assert len(written) == held
    assert {"jobs", "ready_by_priority", "ready_by_queue"} <= {names[page] for page in written}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_of_tick_writes(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.pages.BACKLOG", 3_000)
    found = measured(tmp_path / "jobs.db", kind, queues=3, count=1)
    assert found.pages == sum(found.of.values()) > 0
