"""One owner of a data directory, however the last one has ended."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zq.store.errors import DirectoryInUse
from zq.store.sqlite.lock import DirectoryLock

from ..rig import Rig

HOLD = """
import sys
from pathlib import Path
from zq.store.sqlite.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_owner(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the directory until its input ends or it is killed."""
    command = [sys.executable, "-c", HOLD, str(directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_the_directory_is_made_where_it_is_missing(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    DirectoryLock(directory).release()
    assert directory.is_dir()


def test_a_second_owner_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(DirectoryInUse, match=rf"process {os.getpid()}\b") as refusal:
        DirectoryLock(tmp_path)
    assert str(tmp_path) in str(refusal.value)
    lock.release()


def test_a_released_directory_has_its_next_owner(tmp_path: Path) -> None:
    for _ in range(3):
        DirectoryLock(tmp_path).release()


def test_a_refused_attempt_leaves_the_owner_its_lock(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    for _ in range(3):
        with pytest.raises(DirectoryInUse):
            DirectoryLock(tmp_path)
    lock.release()
    DirectoryLock(tmp_path).release()


def test_another_process_keeps_the_directory_until_it_is_killed(tmp_path: Path) -> None:
    with another_owner(tmp_path) as owner:
        with pytest.raises(DirectoryInUse, match=rf"process {owner.pid}\b"):
            DirectoryLock(tmp_path)
        owner.kill()
        owner.wait()
        DirectoryLock(tmp_path).release()


def test_a_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        DirectoryLock(tmp_path).release()
        assert child.poll() is None


def test_a_shorter_pid_leaves_no_digits_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "zq.lock").write_text("99999999999999\n")
    lock = DirectoryLock(tmp_path)
    assert (tmp_path / "zq.lock").read_text() == f"{os.getpid()}\n"
    lock.release()


async def test_a_second_store_on_the_same_directory_is_refused(rig: Rig) -> None:
    (key,) = await rig.keep(1)
    second = Rig(rig.directory)
    with pytest.raises(DirectoryInUse):
        await second.open()
    assert list(await rig.statuses()) == [key]
    await rig.close()
    await second.open()
    assert list(await second.statuses()) == [key]
    await second.close()
