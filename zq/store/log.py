"""Logs: append-only records, numbered without gaps within their log, that retention removes.

Records are appended by the transaction that they tell of, so after a crash there is either both or
neither. What has been read under a number stays what it is until it is removed; `read_log` is the
only way to read.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

import msgspec

from zq.model.errors import CursorAhead, RecordsGone
from zq.model.log import Bounds, Stored, outworn
from zq.store.quarantine import UnreadableRows
from zq.store.queries import load
from zq.store.work import BYTES_A_ROW, Work, as_json

QUERIES = load("log.sql")

TRIMMED = 64
"""Batches that are removed at a time, so that acknowledgements pass between."""

PAGE_BYTES = 8 * 1024 * 1024
"""Bytes after which a page ends before its limit."""

_records = msgspec.json.Decoder(list[msgspec.Raw])


class Batch(NamedTuple):
    """Records that follow each other, and what they have in `shared`; all of it JSON text."""

    first_seq: int
    shared: str
    records: list[msgspec.Raw]


class LogPage(NamedTuple):
    """What was read, and the range that is there to be read.

    `min_seq` is one more than `max_seq` where that is nothing.
    """

    min_seq: int
    max_seq: int
    batches: list[Batch]


class _Log(NamedTuple):
    id: int
    min_seq: int
    max_seq: int
    bytes: int
    bounds: Bounds


def append(work: Work, log: str, source: str, shared: object, **parameters: object) -> int:
    """Append the records that the named query `source` yields; the last number in use then."""
    sql = QUERIES["append"].replace("SOURCE", QUERIES[source])
    stamp: dict[str, object] = {"log": log, "now": work.now}
    added = work.rows_of(sql, {**stamp, "shared": as_json(shared), **parameters})
    if not added:
        return 0
    ((count, size),) = added
    work.rows += 1 + size // BYTES_A_ROW
    grown = work.rows_of(QUERIES["extend_log"], {**stamp, "count": count, "bytes": size})
    ((min_seq, max_seq, is_over),) = grown
    if max_seq - min_seq + 1 == count:
        work.moves_deadlines = True
    if is_over:
        _trim(work, log)
    last: int = max_seq
    return last


def trim_logs(work: Work) -> None:
    """Remove records that are past their age."""
    for log in work.names(QUERIES["to_be_trimmed"], now=work.now):
        _trim(work, log)


def set_bounds(connection: sqlite3.Connection, log: str, bounds: Bounds) -> None:
    """Go by these bounds from now on. Inside a transaction."""
    values = {"age_ms": bounds.age_ms, "records": bounds.records, "bytes": bounds.bytes, "log": log}
    connection.execute(QUERIES["set_bounds"], values)


def last_seq(connection: sqlite3.Connection, log: str) -> int:
    """The last number in use; 0 where none is."""
    return _look(connection, log).max_seq


def read_log(
    connection: sqlite3.Connection, log: str, after: int | None, upto: int, limit: int
) -> LogPage:
    """Up to `limit` records with ``after < seq <= upto``; after None, from the oldest one on.

    A page ends before records that were set aside, for they cannot be read. Raises `RecordsGone`
    where these, or such as retention has removed, come after `after`, and `CursorAhead` where that
    lies beyond `upto`'s log altogether.
    """
    found = _look(connection, log)
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
    """What to raise where the batch that has this record holds something else than it should."""
    return UnreadableRows("log_batches", [(_look(connection, log).id, seq)])


def _batches(connection: sqlite3.Connection, id: int, after: int, upto: int) -> Iterator[Batch]:
    size, due = 0, after + 1
    values = {"id": id, "after": after}
    with closing(connection.execute(QUERIES["batches"], values)) as rows:
        for first_seq, shared, body in rows:
            start = max(after + 1 - first_seq, 0)
            if first_seq + start != due or first_seq > upto or size > PAGE_BYTES:
                return
            size += len(body)
            try:
                records = _records.decode(body)[start : upto + 1 - first_seq]
                due += len(records)
                yield Batch(first_seq + start, shared.decode(), records)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise UnreadableRows("log_batches", [(id, first_seq)]) from None


def _trim(work: Work, log: str) -> None:
    found = _log(work.rows_of(QUERIES["extent"], {"log": log}))
    values: dict[str, object] = {"id": found.id, "limit": TRIMMED}
    oldest = [Stored(*row) for row in work.rows_of(QUERIES["oldest"], values)]
    records = found.max_seq - found.min_seq + 1
    gone = oldest[: outworn(oldest, records, found.bytes, found.bounds, work.now)]
    if gone:
        values = {"id": found.id, "upto": gone[-1].last_seq}
        work.execute(QUERIES["trim"], values)
        size = sum(batch.size for batch in gone)
        work.execute(QUERIES["note_trim"], {**values, "bytes": size})


def _look(connection: sqlite3.Connection, log: str) -> _Log:
    return _log(connection.execute(QUERIES["extent"], {"log": log}).fetchall())


def _log(rows: list[tuple[Any, ...]]) -> _Log:
    ((id, min_seq, max_seq, size, *bounds),) = rows
    return _Log(id, min_seq, max_seq, size, Bounds(*bounds))
