"""The form of a backup: a gzipped tar of a directory with one database, as Zizq has it."""

import gzip
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO

FOLDER = "zizq-root"
MEMBER = f"{FOLDER}/zq.db"

PIECE = 512 * 1024
"""How many bytes are read at a time."""

LEVEL = 1
"""The level of gzip. A higher one takes several times as long and saves a tenth."""

_MOST_PADDING = 1024 * 1024
"""The most bytes after the end of a tar: zeros, up to the block size of a tape."""

SIZE_HEADER = "Zq-Unpacked-Bytes"
"""Tells a client the size of an archive before compression."""


class InvalidArchive(Exception):
    """The input is not a complete backup of zq. The text says why."""


def unpacked_size(database: BinaryIO) -> int:
    """The size of a database's tar."""
    size = os.fstat(database.fileno()).st_size
    return tarfile.BLOCKSIZE * 4 + size + -size % tarfile.BLOCKSIZE


def pack(database: BinaryIO) -> Iterator[bytes]:
    """The archive of a database in pieces. None of them is empty."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in _tar(database):
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def _tar(database: BinaryIO) -> Iterator[bytes]:
    found = os.fstat(database.fileno())
    folder, member = tarfile.TarInfo(FOLDER), tarfile.TarInfo(MEMBER)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o700
    member.size, member.mode = found.st_size, 0o600
    folder.mtime = member.mtime = int(found.st_mtime)
    yield folder.tobuf(tarfile.GNU_FORMAT) + member.tobuf(tarfile.GNU_FORMAT)
    left = found.st_size
    while left:
        piece = database.read(min(PIECE, left))
        if not piece:
            raise OSError("the copy is shorter than it was")
        left -= len(piece)
        yield piece
    yield bytes(-found.st_size % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)


@contextmanager
def database_in(archive: IO[bytes]) -> Iterator[tuple[IO[bytes], int]]:
    """The database in an archive, to be read once, and its size.

    At the end of the block the rest of the archive is read and its checksum compared. Raises
    `InvalidArchive`, also while reading, and OSError.
    """
    try:
        with gzip.open(archive) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as tar:
            member = _only_member(tar)
            content = tar.extractfile(member)
            assert content is not None
            yield content, member.size
            if (other := tar.next()) is not None:
                raise InvalidArchive(f"it holds {other.name!r} too, which no backup of zq has")
            if len(unpacked.read(_MOST_PADDING)) == _MOST_PADDING:
                raise InvalidArchive("something follows the backup")
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise InvalidArchive(
            f"it is damaged, or was cut off, or is no .tar.gz at all ({error})"
        ) from None


def _only_member(tar: tarfile.TarFile) -> tarfile.TarInfo:
    """The member with the database. Its directory may precede it."""
    while (member := tar.next()) is not None:
        if member.name == MEMBER and member.isreg() and not member.issparse():
            return member
        if not (member.name == FOLDER and member.isdir()):
            raise InvalidArchive(
                f"it holds {member.name!r}, which no backup of zq has: was it made by `zq backup`?"
            )
    raise InvalidArchive(f"there is no {MEMBER} in it: was it made by `zq backup`?")
