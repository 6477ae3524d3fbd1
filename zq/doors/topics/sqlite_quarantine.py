"""Sets aside records of topics that cannot be read."""

import sqlite3
from collections.abc import Iterator

import msgspec

from zq.model.checksums import ChecksumMismatch, record_checksum
from zq.model.effects import Misfit
from zq.store.sqlite.checksums import CheckedTable
from zq.store.sqlite.quarantine import move, note_again, reason_of
from zq.store.sqlite.queries import load

QUERIES = load(__name__)


def check_record(data: bytes, meta: bytes | None, stored: int | None) -> None:
    """Check the texts of a topic's record. Raises an error that `is_unreadable` knows."""
    if stored not in (None, record_checksum(data, meta)):
        raise ChecksumMismatch("the record")
    for text in (data, meta):
        if text is not None:
            msgspec.json.decode(text)


def _record(connection: sqlite3.Connection, key: int, now: int) -> Iterator[Misfit]:
    place: dict[str, object] = {"key": key}
    try:
        for data, meta, stored in connection.execute(QUERIES["record"], place):
            check_record(data, meta, stored)
    except Exception as error:
        reason = reason_of("the record", error)
        connection.execute(QUERIES["shorten_topic"], place)
        yield move(connection, "topic_records", place, reason, now)


def _write(connection: sqlite3.Connection, key: tuple[int, str], now: int) -> Iterator[Misfit]:
    """Set aside a write that is recognised by its key. The tick knows which numbers it may have."""
    place: dict[str, object] = {"topic": key[0], "key": key[1]}
    yield move(connection, "topic_writes", place, "it has numbers that no write can have", now)


ASIDE = {"topic_records": _record, "topic_writes": _write}

CHECKED = CheckedTable("topic_records", QUERIES["topic_records"], record_checksum)


def _count_again(connection: sqlite3.Connection, now: int) -> Iterator[Misfit]:
    """Count the records of topics anew whose numbers cannot be."""
    for (id,) in connection.execute(QUERIES["miscounted"]).fetchall():
        connection.execute(QUERIES["count_topic"], {"id": id})
        yield note_again(connection, Misfit("topics", str(id), "its numbers could not be", now))


MENDS = (_count_again,)
