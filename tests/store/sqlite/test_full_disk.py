"""The commands on a stopped server's directory tell a full disk from a damaged database."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from crash.fleet import leave_free, small_disk

from zq.cli.group import main
from zq.store.errors import StoreFull
from zq.store.sqlite.connection import PAGE_BYTES
from zq.store.sqlite.moving import target

from ..rig import Ticker


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", mib=4) as mount:
        yield mount


def test_a_move_onto_a_full_disk_says_so(disk: Path) -> None:
    ends = {"full": 0, "made": 0}
    for free in range(8 * PAGE_BYTES, 1024 * 1024, 8 * PAGE_BYTES):
        leave_free(disk, free)
        try:
            with target(str(disk / "new")):
                ends["made"] += 1
        except StoreFull:
            ends["full"] += 1
        shutil.rmtree(disk / "new")
    assert all(ends.values()), ends


def test_a_check_without_space_for_a_copy_says_so(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data"
    root.mkdir()
    with closing(Ticker(tmp_path / "zq.db")) as ticker:
        ticker.store(3)
        shutil.copy(tmp_path / "zq.db", root)
        shutil.copy(tmp_path / "zq.db-wal", root)
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    leave_free(disk, PAGE_BYTES)
    said = CliRunner().invoke(main, ["check", "--root-dir", str(root)])
    assert (said.exit_code, "Set TMPDIR" in said.output) == (74, True), said.output
    with closing(sqlite3.connect(root / "zq.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
