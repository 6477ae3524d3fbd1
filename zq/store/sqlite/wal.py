"""Reads a write-ahead log frame by frame, by its published format and without SQLite.

The format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log. The checksum of a frame
goes on from that of the frame before. So SQLite ends its recovery at the first frame that does not
fit, whatever follows. This module looks behind that frame too.
"""

import struct
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682

Sum = tuple[int, int]


class InvalidHeader(Exception):
    """The header of a log is damaged, so that no frame of it can be used."""


class LogWalk(NamedTuple):
    """The findings of a walk. Frames count from 1."""

    frames: int
    """The whole frames in the file that belong to the log's present round."""
    recovered: int
    """The frames up to the last sound commit: SQLite recovers these."""
    bad: int | None = None
    """The first frame that does not fit; None if all do."""
    sound_behind: int = 0
    """How many frames behind the bad one are sound."""
    commits_behind: int = 0
    """How many transactions end in or behind the bad frame, as far as the frames tell."""
    sound_later: int = 0
    """How many sound frames come behind the transaction that has the bad one."""

    @property
    def is_torn(self) -> bool:
        """True if the log ends in frames that do not fit, as after a power cut."""
        return self.bad is not None and not self.sound_behind

    @property
    def is_last_change(self) -> bool:
        """True if only the last transaction has frames that do not fit.

        A disk may write the frames of a flush in any order, and a power cut may leave any of them
        out. Once it is flushed, zq writes the next one.
        """
        return self.bad is not None and not self.sound_later

    def loss(self) -> str:
        """The text about the pages that a start would lose. Call it if a frame is bad."""
        many = self.frames - self.recovered
        pages = f"{many} of its {self.frames} pages"
        changes = f"{self.commits_behind} {'change' if self.commits_behind == 1 else 'changes'}"
        return f"page {self.bad} does not fit, and a start loses {pages} with about {changes}"


def refuse_bad_header(path: Path) -> None:
    """Raise `InvalidHeader` if the header of a log is damaged."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        _read_header(file)


def walk(path: Path, known: int = 0) -> LogWalk | None:
    """Check the frames of a log behind the first `known` ones; None if there is no log.

    It takes about 15 ms a MiB. Raises `InvalidHeader` or OSError.
    """
    with suppress(FileNotFoundError), path.open("rb") as file:
        header = _read_header(file)
        if header is not None:
            return _walk(_frames(file, header, known), header.salts, known)
    return None


def replay(wal: Path, database: Path, page_size: int) -> LogWalk:
    """Write the changes of a log with a damaged header into a copy of its database.

    All that its frames need of the header is its checksum, which is stored in it and also follows
    from it: one damage does not hit both. The changes up to the last sound commit are written.
    Raises OSError.
    """
    with wal.open("rb") as file, database.open("r+b") as target:
        head = file.read(_HEADER.size)
        head += bytes(_HEADER.size - len(head))
        stored = _HEADER.unpack(head)[6:8]
        salts = _FRAME.unpack(file.read(_FRAME.size).ljust(_FRAME.size, b"\0"))[2:4]
        best = LogWalk(0, 0)
        frames: list[_Frame] = []
        for is_big in (False, True):
            for start in (stored, checksum(head[:24], (0, 0), is_big)):
                file.seek(_HEADER.size)
                tried = [*_frames(file, _Header(is_big, page_size, salts, start), 0)]
                found = _walk(iter(tried), salts, 0)
                if not frames or found.recovered > best.recovered:
                    best, frames = found, tried
        for frame in frames[: best.recovered]:
            file.seek(_HEADER.size + frame.number * (_FRAME.size + page_size) - page_size)
            target.seek((frame.page - 1) * page_size)
            target.write(file.read(page_size))
            if frame.pages:
                target.truncate(frame.pages * page_size)
    return best


class _Header(NamedTuple):
    is_big: bool
    """True if checksums take words with the highest byte first."""
    page_size: int
    salts: Sum
    checksum: Sum


def _read_header(file: BinaryIO) -> _Header | None:
    head = file.read(_HEADER.size)
    if len(head) < _HEADER.size or not any(head):
        return None
    magic, _version, page_size, _round, *rest = _HEADER.unpack(head)
    is_big = bool(magic & 1)
    if magic & ~1 != _MAGIC or checksum(head[:24], (0, 0), is_big) != (rest[2], rest[3]):
        raise InvalidHeader
    return _Header(is_big, page_size, (rest[0], rest[1]), (rest[2], rest[3]))


class _Frame(NamedTuple):
    """The header of a frame, and the checksum that its content has."""

    number: int
    page: int
    """The page of the database that it has."""
    pages: int
    """How many pages the database has after a commit; 0 within one."""
    salts: Sum
    fits: bool
    """True if its checksum goes on from the frame before."""


def _frames(file: BinaryIO, header: _Header, known: int) -> Iterator[_Frame]:
    is_big, size = header.is_big, _FRAME.size + header.page_size
    before = {header.checksum}
    if known:
        file.seek(_HEADER.size + (known - 1) * size)
        before = {_FRAME.unpack(file.read(_FRAME.size))[4:6]}
        file.seek(header.page_size, 1)
    number = known
    while len(frame := file.read(size)) == size:
        number += 1
        page, pages, *salts, s1, s2 = _FRAME.unpack_from(frame)
        found = {
            checksum(frame[_FRAME.size :], checksum(frame[:8], start, is_big), is_big)
            for start in before
        }
        fits = page > 0 and (s1, s2) in found
        yield _Frame(number, page, pages, (salts[0], salts[1]), fits)
        # The stored checksum of a bad frame may be what is wrong with it.
        before = {(s1, s2), *found} if len(found) == 1 else {(s1, s2)}


def _walk(frames: Iterator[_Frame], salts: Sum, known: int) -> LogWalk:
    last = recovered = known
    bad: int | None = None
    sound_behind = commits_behind = sound_later = 0
    for number, _page, pages, its_salts, fits in frames:
        is_next = number == last + 1 and bad is None
        if its_salts != salts and not (fits and is_next):
            # It is of an earlier round: the salts of a damaged one would not be all that changed.
            continue
        last = number
        if fits and is_next and its_salts == salts:
            recovered = number if pages else recovered
            continue
        if bad is None:
            bad = number
        else:
            sound_behind += fits
            sound_later += fits and commits_behind > 0
        commits_behind += pages > 0
    if bad is None:
        # What was written of a transaction without an end is no damage.
        return LogWalk(last, recovered)
    return LogWalk(last, recovered, bad, sound_behind, max(commits_behind, 1), sound_later)


def checksum(content: bytes, before: Sum, is_big: bool) -> Sum:
    """Go on with the checksum of a log over more of its content, whole pairs of 32-bit words."""
    words = array("I", content)
    if is_big is not _IS_BIG:
        words.byteswap()
    first, second = before
    pairs = iter(words)
    for word in pairs:
        first = (first + word + second) & 0xFFFFFFFF
        second = (second + next(pairs) + first) & 0xFFFFFFFF
    return first, second


_IS_BIG = array("I", [1]).tobytes()[0] == 0
