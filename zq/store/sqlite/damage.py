"""Checks a database for damage before it is used, also for damage that SQLite would ignore."""

import logging
import sqlite3
import struct
from pathlib import Path

log = logging.getLogger(__name__)

CHECKED_BYTES = 64 * 1024 * 1024
"""A start does not check a larger file, since the check takes 7 ms a MiB."""

MOST_FINDINGS = 5

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
"""https://www.sqlite.org/fileformat2.html#the_write_ahead_log"""

_MAGIC = 0x377F0682


def refuse_damage(connection: sqlite3.Connection) -> None:
    """Check a database of moderate size. Raises `sqlite3.DatabaseError` if it is damaged."""
    if is_small(connection) and (found := find_damage(connection)):
        raise sqlite3.DatabaseError(
            f"it is damaged ({'; '.join(found)}): put back a copy of the directory, or save what"
            " can be read with sqlite3's command .recover"
        )


def is_small(connection: sqlite3.Connection) -> bool:
    """Whether a start has the time to look at every row."""
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return pages * page_size <= CHECKED_BYTES


def find_damage(connection: sqlite3.Connection) -> list[str]:
    """The damage in the tables, their indexes and the kept counts, each in a few words."""
    rows = connection.execute(f"PRAGMA integrity_check({MOST_FINDINGS})").fetchall()
    found = [text for (text,) in rows if text != "ok"]
    if not found and connection.execute(_MISCOUNTED).fetchone()[0]:
        found.append("the kept counts of jobs are not those of the jobs")
    return found


_MISCOUNTED = """
    SELECT EXISTS (
        SELECT queue, status, n FROM queue_counts WHERE n > 0
        EXCEPT SELECT queue, status, count(*) FROM jobs GROUP BY queue, status)
    OR (SELECT count(*) FROM jobs) <> (SELECT total(n) FROM queue_counts)
"""


def refuse_damaged_log(wal: Path) -> None:
    """Check a log's header before SQLite reads it. SQLite takes a damaged log for an empty one.

    Raises `sqlite3.DatabaseError`.
    """
    header = _header(wal)
    if header is None or not any(header):
        return
    magic = header[0]
    if magic & ~1 != _MAGIC or _checksum(header[:6], magic & 1) != header[6:]:
        raise sqlite3.DatabaseError(
            f"the header of its log {wal.name} is damaged: put back a copy of the directory, or"
            " move that file away to start without the changes in it"
        )


def report_torn_tail(wal: Path, valid: int) -> None:
    """Log a warning if a log has more pages than the `valid` ones that SQLite has recovered.

    Such pages are damaged, or belong to a transaction that was cut off before any answer.
    """
    header = _header(wal)
    if header is None:
        return
    dropped = 0
    page_size, salts = header[2], header[4:6]
    with wal.open("rb") as file:
        file.seek(_HEADER.size + valid * (_FRAME.size + page_size))
        while len(head := file.read(_FRAME.size)) == _FRAME.size:
            dropped += _FRAME.unpack(head)[2:4] == salts
            file.seek(page_size, 1)
    if dropped:
        log.warning(
            "the log ends in pages that are unfinished or damaged: changes in them are lost",
            extra={"fields": {"pages": dropped, "recovered_pages": valid}},
        )


def _header(wal: Path) -> tuple[int, ...] | None:
    if not wal.exists():
        return None
    with wal.open("rb") as file:
        head = file.read(_HEADER.size)
    return _HEADER.unpack(head) if len(head) == _HEADER.size else None


def _checksum(words: tuple[int, ...], big_endian: int) -> tuple[int, int]:
    if not big_endian:
        count = len(words)
        words = struct.unpack(f"<{count}I", struct.pack(f">{count}I", *words))
    first = second = 0
    for x, y in zip(words[::2], words[1::2], strict=True):
        first = (first + x + second) & 0xFFFFFFFF
        second = (second + y + first) & 0xFFFFFFFF
    return first, second
