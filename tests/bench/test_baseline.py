"""The baseline does its work: answered jobs are on the disk, and workers get stored jobs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bench.baseline import SCHEMA, transaction
from bench.baseline_disk import KINDS, Kind, open_disk
from bench.load import in_own_process, run_load
from bench.rows import ROWS
from bench.servers import Lab, ServerError, lab

SECONDS = 0.2
SLOW_MS = 60.0


@pytest.fixture
def place() -> Iterator[Lab]:
    with lab() as found:
        yield found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", ["single-8", "take-50"])
def test_stores_and_hands_out_wherever_it_ticks(place: Lab, kind: Kind, row: str) -> None:
    spec = ROWS[row].spec(queues=3, seconds=SECONDS)
    with replace(place, baseline=kind).server("baseline") as target:
        result = in_own_process(run_load, target, spec)
    assert all(measure.jobs > 0 for measure in result.measures)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_commit_that_has_ended_is_there_for_others(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "jobs.db"
    row = (1, "queue", "type", 5, 6, "{}")
    async with open_disk(path, SCHEMA, kind) as disk:
        await disk.commit(lambda connection: transaction(connection, [row], [], 0))
        handed = await disk.commit(lambda connection: transaction(connection, [], [], 10))
    assert json.loads(handed) == [list(row)]
    other = sqlite3.connect(path)
    assert other.execute("SELECT id, taken FROM jobs").fetchall() == [(1, 1)]
    other.close()


COMMIT = """
import asyncio, sys, time
from functools import partial
from pathlib import Path
from bench.baseline import SCHEMA, transaction
from bench.baseline_disk import open_disk

async def main():
    async with open_disk(Path(sys.argv[1]), SCHEMA, sys.argv[2]) as disk:
        turns = 0
        async def turn():
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += 1
        others = asyncio.ensure_future(turn())
        await asyncio.sleep(0)
        began = time.monotonic()
        rows = [(1, "queue", "type", 5, 6, "{}")]
        await disk.commit(partial(transaction, rows=rows, done=[], credit=0))
        took = time.monotonic() - began
        others.cancel()
        print(took * 1000, turns)

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_slower_disk_delays_a_commit_and_not_the_loop(tmp_path: Path, kind: Kind) -> None:
    """Also where the kernel is asked for the flush, past `fdatasync`."""
    with lab(tmp_path, SLOW_MS) as slow:
        ran = subprocess.run(
            [sys.executable, "-c", COMMIT, str(tmp_path / "jobs.db"), kind],
            env={**os.environ, **slow.environment},
            capture_output=True,
            text=True,
            check=True,
        )
    took, turns = ran.stdout.split()
    assert float(took) >= SLOW_MS
    assert int(turns) > 0


def test_a_server_that_nobody_named_is_asked_for(place: Lab) -> None:
    for name in ("before", "zizq"):
        with pytest.raises(ServerError, match=f"--{name}"), place.server(name):
            pytest.fail("there is nothing to run")


def test_an_earlier_checkout_runs_beside(place: Lab, tmp_path: Path) -> None:
    """Its own code is what runs, whatever is installed."""
    package = tmp_path / "zq" / "cli"
    package.mkdir(parents=True)
    (tmp_path / "zq" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("raise SystemExit('an earlier one')")
    with (
        pytest.raises(ServerError, match="an earlier one"),
        replace(place, before=tmp_path).server("before"),
    ):
        pytest.fail("another one has started")
