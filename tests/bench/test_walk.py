"""The walks through zq list every file, and stay as short as they are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench.walk import HOUSE, Walk, walk_table, walks

MOST = {
    "POST /jobs": (36, 82),
    "GET /jobs/take": (38, 113),
    "POST /jobs/{id}/success": (42, 124),
}
"""Files that a request may enter, and how often it may change file."""

MOST_ROUNDS = 10
"""A timer of the idle server may go off during a walk, the more often the busier the machine is."""


def is_short(walk: Walk) -> bool:
    most_files, most_changes = MOST[walk.name]
    return len(walk.files) <= most_files and walk.changes <= most_changes


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> list[list[Walk]]:
    """Rounds of walks, until each was short once."""
    found: list[list[Walk]] = []
    while len(found) < MOST_ROUNDS:
        found.append(asyncio.run(walks(tmp_path_factory.mktemp("walk"))))
        if {each.name for walks in found for each in walks if is_short(each)} == set(MOST):
            break
    return found


def test_each_walk_begins_at_the_connection_and_passes_the_tick(rounds: list[list[Walk]]) -> None:
    found = rounds[0]

    assert [each.name for each in found] == [*MOST]
    for each in found:
        assert each.files[0].startswith("http/transport/")
        assert "tick/runner.py" in each.files
        assert all(Path(HOUSE, name).is_file() for name in each.files)
        assert each.changes >= len(each.files) - 1
    assert len(walk_table(found).lines) == sum(len(each.files) for each in found)


@pytest.mark.parametrize("name", MOST)
def test_a_request_enters_few_files_and_seldom_changes_file(
    rounds: list[list[Walk]], name: str
) -> None:
    found = [each for walks in rounds for each in walks if each.name == name]
    shortest = min(found, key=lambda each: (len(each.files), each.changes))
    assert any(map(is_short, found)), shortest
