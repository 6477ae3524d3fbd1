"""`zq check` as users run it."""

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from store.rig import Ticker

from zq.cli.group import main
from zq.model.ids import IdCodec
from zq.model.job import JobSettings
from zq.store.sqlite.lock import DirectoryLock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A data directory with some jobs."""
    with closing(Ticker(tmp_path / "zq.db")) as ticker:
        ticker.store(3)
    return tmp_path


def check(root: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", "--root-dir", str(root)])
    return result.exit_code, result.output


def test_a_file_and_what_may_not_be_read_are_named(root: Path) -> None:
    code, output = check(root / "zq.db")
    assert (code, "zq.db is a file: name the directory" in output) == (2, True)
    if os.geteuid() != 0:
        pytest.skip("only root can make a directory of another user")
    for directory in (root, *root.parents):
        # The directory for all temporary files has its own mode, which everybody needs.
        if Path(tempfile.gettempdir()) in directory.parents:
            directory.chmod(0o755)
    (root / "zq.db").chmod(0o600)
    os.seteuid(65534)
    try:
        code, output = check(root)
    finally:
        os.seteuid(0)
    assert (code, "belongs to root. Run this as that user" in output) == (77, True)


def test_a_sound_database_is_passed_with_what_is_in_it(root: Path) -> None:
    code, output = check(root)
    assert code == 0
    assert output.startswith(f"{root / 'zq.db'}: no damage found in 3 jobs of 1 queue, 0.")


def test_rows_that_were_set_aside_are_named(root: Path) -> None:
    with closing(Ticker(root / "zq.db")) as ticker:
        (key,) = ticker.store(1, options=JobSettings(retry_limit=1))
        suffix = ticker.value("SELECT value FROM meta WHERE name = 'id_suffix'")
        ticker.connection.execute(
            """UPDATE jobs SET options = '{"retry_limit":"x"}' WHERE id=?""", [key]
        )
        ticker.take(5)
    code, output = check(root)
    assert code == 74
    _, line = output.splitlines()
    assert line == (
        f"{root / 'zq.db'}: set aside: jobs {IdCodec(suffix).text(key)} (its row holds something"
        " else than it should: Expected `int | null`, got `str` - at `$[16].retry_limit`)"
    )


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA user_version = 99", "schema version 99, this zq knows up to"),
        ("PRAGMA application_id = 1", "the database is not zq's"),
    ],
)
def test_a_database_that_is_not_for_this_zq_is_no_damage(
    root: Path, statement: str, words: str
) -> None:
    with closing(sqlite3.connect(root / "zq.db", isolation_level=None)) as connection:
        connection.execute(statement)

    code, output = check(root)
    assert code == 78
    assert words in output


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
