"""The walks through zq are told file by file."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.walk import HOUSE, walk_table, walks


def test_each_walk_begins_at_the_connection_and_passes_the_tick(tmp_path: Path) -> None:
    found = asyncio.run(walks(tmp_path))

    assert [each.name for each in found] == [
        *("POST /jobs", "GET /jobs/take", "POST /jobs/{id}/success")
    ]
    for each in found:
        assert each.files[0].startswith("http/transport/")
        assert "tick/runner.py" in each.files
        assert all(Path(HOUSE, name).is_file() for name in each.files)
        assert each.changes >= len(each.files) - 1
    assert len(walk_table(found).lines) == sum(len(each.files) for each in found)
