"""`zq check` as a person meets it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from store.rig import Ticker

from zq.cli import main
from zq.store.lock import DirectoryLock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data directory with some jobs."""
    with closing(Ticker(tmp_path / "zq.db")) as ticker:
        ticker.store(3)
    return tmp_path


def check(root: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", "--root-dir", str(root)])
    return result.exit_code, result.output


def test_a_sound_database_is_passed_without_a_word(root: Path) -> None:
    assert check(root) == (0, "")


def test_damage_is_named(root: Path) -> None:
    with closing(sqlite3.connect(root / "zq.db", isolation_level=None)) as connection:
        connection.execute("UPDATE queue_counts SET n = n + 1")

    assert check(root) == (
        74,
        f"{root / 'zq.db'}: the kept counts of jobs are not those of the jobs\n",
    )


def test_a_file_that_is_no_database_is_named(root: Path) -> None:
    (root / "zq.db").write_bytes(b"no database" * 1000)

    code, output = check(root)
    assert code == 74
    assert "file is not a database" in output


def test_a_running_server_is_not_disturbed(root: Path) -> None:
    lock = DirectoryLock(root)
    code, output = check(root)
    lock.release()
    assert code == 75
    assert "in use by another zq" in output


def test_a_directory_without_data_is_a_mistake(tmp_path: Path) -> None:
    code, output = check(tmp_path)
    assert code == 2
    assert "does not exist" in output
    assert list(tmp_path.iterdir()) == []
