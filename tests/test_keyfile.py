"""The key file on the disk."""

import os
import threading
from pathlib import Path

import pytest

from zq import keyfile
from zq.model.keys import InvalidKey, make_key


def names(path: Path) -> list[str]:
    return [key.name for key in keyfile.read(path).keys]


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    previous = os.umask(0)
    try:
        keyfile.add(path, make_key("a", None, "read", []))
    finally:
        os.umask(previous)

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_uid == tmp_path.stat().st_uid
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_made_by_root_belongs_to_the_owner_of_its_directory(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "these tests run as root"
    os.chown(tmp_path, 4711, 4712)
    path = tmp_path / "keys"

    keyfile.add(path, make_key("a", None, "read", []))

    assert (path.stat().st_uid, path.stat().st_gid) == (4711, 4712)


def test_a_file_keeps_its_mode_its_owner_and_its_comments(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("# ours\n\na - read\n# b was here\nc - take")
    path.chmod(0o640)
    os.chown(path, 4711, 4712)

    keyfile.add(path, make_key("d", None, "manage", ["x-"]))
    keyfile.revoke(path, "a")

    assert path.read_text() == "# ours\n\n# b was here\nc - take\nd - manage x-\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.stat().st_uid == 4711


@pytest.mark.parametrize("text", ["a - read\n", "nonsense\n"])
def test_an_edit_that_is_refused_changes_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    before = path.stat()

    with pytest.raises(InvalidKey):
        keyfile.add(path, make_key("a", None, "take", []))
    with pytest.raises(InvalidKey):
        keyfile.revoke(path, "b")

    assert path.read_text() == text
    assert path.stat().st_ino == before.st_ino


def test_edits_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    start = threading.Barrier(8)

    def edit(number: int) -> None:
        start.wait()
        keyfile.add(path, make_key(f"k{number}", None, "read", []))

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(names(path)) == [f"k{number}" for number in range(8)]


def test_what_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "keys", tmp_path):
        with pytest.raises(InvalidKey, match=str(path.parent)):
            keyfile.add(path, make_key("a", None, "read", []))
    with pytest.raises(InvalidKey, match="make the directory first"):
        keyfile.add(tmp_path / "none" / "keys", make_key("a", None, "read", []))
    with pytest.raises(InvalidKey, match="No such file"):
        keyfile.read(tmp_path / "keys")
