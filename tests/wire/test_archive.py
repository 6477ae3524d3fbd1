"""Archives of a backup: refusals, so that only a database is ever written."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from zq.wire.archive import MEMBER, InvalidArchive, database_in, pack, unpacked_size


def read(archive: bytes) -> bytes:
    with database_in(io.BytesIO(archive)) as (content, size):
        found = content.read()
        assert len(found) == size
        return found


def member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return made.getvalue()


@pytest.mark.parametrize("size", [0, 1, 512, 513, 3 * 512 * 1024 + 7])
def test_what_is_packed_is_read_again(tmp_path: Path, size: int) -> None:
    file = tmp_path / "database"
    file.write_bytes(bytes(range(256)) * (size // 256) + bytes(size % 256))
    with file.open("rb") as database:
        unpacked = unpacked_size(database)
        packed = b"".join(pack(database))
    assert read(packed) == file.read_bytes()
    assert len(gzip.decompress(packed)) == unpacked


def test_what_tar_packs_is_read_too() -> None:
    made = archive(member("zizq-root", type=tarfile.DIRTYPE), member(MEMBER, b"database"))
    assert read(made) == b"database"


# By name: an archive holds the time at which it was made, and no test is to be called by that.
NOT_A_DATABASE = {
    "nothing": lambda: archive(),
    "a path above": lambda: archive(member("../../etc/passwd", b"x")),
    "a path from the root": lambda: archive(member("/zizq-root/zq.db", b"x")),
    "a way around": lambda: archive(member("zizq-root/../zizq-root/zq.db", b"x")),
    "a symbolic link": lambda: archive(
        member(MEMBER, type=tarfile.SYMTYPE, linkname="/etc/passwd")
    ),
    "a hard link": lambda: archive(
        member(MEMBER, type=tarfile.LNKTYPE, linkname="zizq-root/zq.lock")
    ),
    "a pipe": lambda: archive(member(MEMBER, type=tarfile.FIFOTYPE)),
    "another file": lambda: archive(member("zizq-root/data/partitions", b"x")),
    "another file in a directory": lambda: archive(
        member("zizq-root", type=tarfile.DIRTYPE), member("zizq-root/zq.lock", b"1")
    ),
    "two databases": lambda: archive(member(MEMBER, b"x"), member(MEMBER, b"y")),
    "a path above behind a database": lambda: archive(member(MEMBER, b"x"), member("../x", b"y")),
    "no archive": lambda: gzip.compress(b"no tar" * 1000),
    "a long tail": lambda: gzip.compress(
        gzip.decompress(archive(member(MEMBER, b"x"))) + bytes(2 * 1024 * 1024)
    ),
}


@pytest.mark.parametrize("kind", NOT_A_DATABASE)
def test_anything_else_is_refused(kind: str) -> None:
    with pytest.raises(InvalidArchive):
        read(NOT_A_DATABASE[kind]())


def test_every_cut_and_every_flipped_byte_is_found() -> None:
    made = archive(member(MEMBER, b"database" * 500))
    for length in range(len(made) - 1):
        with pytest.raises(InvalidArchive):
            read(made[:length])
    # The first ten bytes say when it was made and where, and the last bits may mean nothing.
    for place in range(10, len(made)):
        flipped = made[:place] + bytes([made[place] ^ 0x10]) + made[place + 1 :]
        try:
            found = read(flipped)
        except InvalidArchive:
            continue
        assert found == b"database" * 500
