"""Reads logs and sets their bounds. `zq.features.history.tick` appends to them.

The record under a number never changes until retention removes it. `read_log` is the only way to
read.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import msgspec

from zq.model.checksums import record_checksum
from zq.model.errors import CursorAhead, RecordsGone
from zq.model.log import Bounds
from zq.store.sqlite.quarantine import ANY_TABLE, UnreadableRows
from zq.store.sqlite.queries import load

QUERIES = load("zq.store.sqlite.log")

PAGE_BYTES = 8 * 1024 * 1024
"""The bytes after which a page ends before its limit."""

_records = msgspec.json.Decoder(list[msgspec.Raw])


class LogBatch(NamedTuple):
    """Consecutive records, and the fields that they have in common (`shared`), as JSON text."""

    first_seq: int
    shared: str
    records: list[msgspec.Raw]


class LogPage(NamedTuple):
    """The records that were read, and the range of records that can be read.

    If there are none, `min_seq` is one more than `max_seq`.
    """

    min_seq: int
    max_seq: int
    batches: list[LogBatch]


class _Extent(NamedTuple):
    id: int
    min_seq: int
    max_seq: int


def set_bounds(connection: sqlite3.Connection, log: str, bounds: Bounds) -> None:
    """Set the bounds of a log from now on. Call it inside a transaction."""
    values = {"age_ms": bounds.age_ms, "records": bounds.records, "bytes": bounds.bytes, "log": log}
    connection.execute(QUERIES["set_bounds"], values)


def last_seq(connection: sqlite3.Connection, log: str) -> int:
    """The last number in use; 0 if there is none."""
    return _extent(connection, log).max_seq


def read_log(
    connection: sqlite3.Connection, log: str, after: int | None, upto: int, limit: int
) -> LogPage:
    """Read up to `limit` records with ``after < seq <= upto``; after None, from the oldest on.

    A page ends before records that were set aside as unreadable. Raises `RecordsGone` if the
    records right after `after` were set aside or removed by retention. Raises `CursorAhead` if
    `after` lies beyond the end of the log.
    """
    found = _extent(connection, log)
    start = found.min_seq - 1 if after is None else after
    if start < found.min_seq - 1:
        raise RecordsGone(start + 1, found.min_seq)
    if start > found.max_seq:
        raise CursorAhead(start, found.max_seq)
    row = connection.execute(QUERIES["next"], {"id": found.id, "after": start}).fetchone()
    following = found.max_seq + 1 if row is None else row[0]
    if following > start + 1:
        if after is not None:
            raise RecordsGone(start + 1, following)
        start = following - 1
    batches = list(_batches(connection, found.id, start, min(upto, start + limit)))
    return LogPage(found.min_seq, found.max_seq, batches)


def unreadable_batch(connection: sqlite3.Connection, log: str, seq: int) -> UnreadableRows:
    """The error for the case that the batch with this record has wrong content."""
    return UnreadableRows("log_batches", [(_extent(connection, log).id, seq)])


def _batches(connection: sqlite3.Connection, id: int, after: int, upto: int) -> Iterator[LogBatch]:
    size, due = 0, after + 1
    values = {"id": id, "after": after}
    with closing(connection.execute(QUERIES["batches"], values)) as rows:
        for first_seq, shared, body, stored in rows:
            start = max(after + 1 - first_seq, 0)
            if first_seq + start != due or first_seq > upto or size > PAGE_BYTES:
                return
            size += len(body)
            if stored not in (None, record_checksum(body, shared)):
                raise UnreadableRows("log_batches", [(id, first_seq)])
            try:
                records = _records.decode(body)[start : upto + 1 - first_seq]
                due += len(records)
                yield LogBatch(first_seq + start, shared.decode(), records)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise UnreadableRows("log_batches", [(id, first_seq)]) from None


def _extent(connection: sqlite3.Connection, log: str) -> _Extent:
    row = connection.execute(QUERIES["extent"], {"log": log}).fetchone()
    if row is None or not 0 < row[1] <= row[2] + 1:
        raise UnreadableRows(ANY_TABLE, ())
    return _Extent(*row[:3])
