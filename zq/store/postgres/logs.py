"""Reads logs. The record under a number never changes until retention removes it."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from zq.model.errors import CursorAhead, RecordsGone
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load

QUERIES = load("zq.store.postgres.log")

PAGE_BYTES = 8 * 1024 * 1024
"""The bytes after which a page ends before its limit."""

_records = msgspec.json.Decoder(list[msgspec.Raw])


class StoredBatch(NamedTuple):
    """Consecutive records, and the fields that they have in common (`shared`), as JSON text."""

    first_seq: int
    shared: str
    records: list[msgspec.Raw]


class StoredPage(NamedTuple):
    """The records that were read, and the range of records that can be read.

    If there are none, `min_seq` is one more than `max_seq`.
    """

    min_seq: int
    max_seq: int
    batches: list[StoredBatch]


def last_seq(connection: Connection, log: str) -> int:
    """The last number in use; 0 if there is none."""
    return _extent(connection, log)[2]


def read_log(
    connection: Connection, log: str, after: int | None, upto: int, limit: int
) -> StoredPage:
    """Read up to `limit` records with ``after < seq <= upto``; after None, from the oldest on.

    Raises `RecordsGone` if the records right after `after` were removed by retention. Raises
    `CursorAhead` if `after` lies beyond the end of the log.
    """
    id, min_seq, max_seq = _extent(connection, log)
    start = min_seq - 1 if after is None else after
    if start < min_seq - 1:
        raise RecordsGone(start + 1, min_seq)
    if start > max_seq:
        raise CursorAhead(start, max_seq)
    found = rows_of(connection, QUERIES["next"], {"id": id, "after": start})
    following = found[0][0] if found else max_seq + 1
    if following > start + 1:
        if after is not None:
            raise RecordsGone(start + 1, following)
        start = following - 1
    batches = list(_batches(connection, id, start, min(upto, start + limit)))
    return StoredPage(min_seq, max_seq, batches)


def _batches(connection: Connection, id: int, after: int, upto: int) -> Iterator[StoredBatch]:
    size, due = 0, after + 1
    page = {"id": id, "after": after, "upto": upto}
    for first_seq, shared, body in rows_of(connection, QUERIES["batches"], page):
        start = max(after + 1 - first_seq, 0)
        if first_seq + start != due or first_seq > upto or size > PAGE_BYTES:
            return
        size += len(body)
        records = _records.decode(body)[start : upto + 1 - first_seq]
        due += len(records)
        yield StoredBatch(first_seq + start, shared, records)


def _extent(connection: Connection, log: str) -> tuple[int, int, int]:
    ((id, min_seq, max_seq, *_),) = rows_of(connection, QUERIES["extent"], {"log": log})
    return id, min_seq, max_seq
