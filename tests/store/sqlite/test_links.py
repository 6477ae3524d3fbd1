"""What root does in the directory of another user, who has put links to files of root's there."""

import io
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from zq.logfile import RotatingFile
from zq.store.errors import DamagedDatabase
from zq.store.sqlite.files import FILE_NAME, LOCK_NAME, MOVING_NAME, RESTORING_NAME, make_private
from zq.store.sqlite.lock import DirectoryLock, locked_unchanged
from zq.store.sqlite.migrate import migrate
from zq.store.sqlite.moving import target
from zq.store.sqlite.restore import restoring

from ..rig import Rig

LINKS: dict[str, Callable[[Path, Path], None]] = {
    "symlink": lambda link, victim: link.symlink_to(victim),
    "hard link": lambda link, victim: link.hardlink_to(victim),
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory of another user's, as the service's is where root restores."""
    assert os.geteuid() == 0, "these tests run as root"
    directory = tmp_path / "service"
    directory.mkdir()
    os.chown(directory, 4711, 4712)
    return directory


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    victim = tmp_path / "victim"
    victim.write_text("root's own")
    victim.chmod(0o644)
    return victim


def state(file: Path) -> tuple[bytes, int, int] | None:
    if not file.exists():
        return None
    return file.read_bytes(), file.stat().st_mode & 0o777, file.stat().st_uid


@pytest.mark.parametrize("link", LINKS)
def test_a_lock_that_is_a_link_is_refused(directory: Path, victim: Path, link: str) -> None:
    before = state(victim)
    LINKS[link](directory / LOCK_NAME, victim)
    with pytest.raises(OSError, match=LOCK_NAME):
        DirectoryLock(directory)
    assert state(victim) == before


def test_a_lock_that_nobody_writes_to_holds_nobody_up(directory: Path) -> None:
    os.mkfifo(directory / LOCK_NAME)
    with pytest.raises(OSError, match=LOCK_NAME):
        DirectoryLock(directory)
    with locked_unchanged(directory):
        pass


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("name", ["zq.db", "zq.db-wal", "zq.db-shm"])
def test_files_of_a_database_that_are_links_leave_the_other_file_its_mode(
    directory: Path, victim: Path, name: str, link: str
) -> None:
    before = state(victim)
    LINKS[link](directory / name, victim)
    if link == "symlink":
        with pytest.raises(OSError, match=name):
            make_private(directory)
    else:
        make_private(directory)
    assert state(victim) == before


@pytest.mark.parametrize("name", ["zq.log", "zq.log.1"])
@pytest.mark.parametrize("link", LINKS)
def test_a_log_that_is_a_link_leaves_the_other_file_as_it_is(
    directory: Path, victim: Path, name: str, link: str
) -> None:
    before = state(victim)
    (directory / "log").mkdir()
    LINKS[link](directory / "log" / name, victim)
    if name == "zq.log":
        with pytest.raises(OSError, match=name):
            RotatingFile(directory / "log")
    else:
        RotatingFile(directory / "log").close()
    assert state(victim) == before


def make_victim(victim: Path, kind: str) -> None:
    if kind != "text":
        victim.unlink()
    if kind == "database":
        with closing(sqlite3.connect(victim, isolation_level=None)) as connection:
            migrate(connection)


def swap(name: Path, other: Path) -> None:
    name.unlink()
    name.symlink_to(other)


@pytest.mark.parametrize("kind", ["text", "database", "missing"])
async def test_race_a_restore_writes_to_no_file_but_its_own(
    rig: Rig,
    directory: Path,
    victim: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The user of the service puts a link where root has just made a file."""
    make_victim(victim, kind)
    before = state(victim)
    with await rig.store.backup(0) as copy:
        database = copy.read()
    real = os.fchmod

    def racing(descriptor: int, mode: int) -> None:
        real(descriptor, mode)
        if (directory / RESTORING_NAME).exists():
            swap(directory / RESTORING_NAME, victim)

    monkeypatch.setattr(os, "fchmod", racing)
    with (
        pytest.raises((DamagedDatabase, OSError)),
        restoring(directory) as write,
    ):
        write(io.BytesIO(database), len(database), lambda _done, _all: None)
    assert state(victim) == before
    assert not (directory / FILE_NAME).exists()


def test_a_move_goes_on_with_no_file_of_another_directory(directory: Path, victim: Path) -> None:
    victim.unlink()
    (directory / MOVING_NAME).symlink_to(victim)
    with pytest.raises(OSError, match=MOVING_NAME), target(str(directory)):
        pass
    assert not victim.exists()


def test_a_directory_that_is_a_link_is_taken(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    DirectoryLock(tmp_path / "link").release()
    with target(str(tmp_path / "link")) as filled:
        filled.is_complete = True
    assert (tmp_path / "real" / FILE_NAME).exists()
