"""Reads logs. `zq.features.history.tick` appends to them.

The record under a number never changes until retention removes it. `read_log` is the only way to
read.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from zq.model.checksums import record_checksum
from zq.model.errors import CursorAhead, RecordsGone
from zq.store.snapshot import ANY_TABLE, Snapshot

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


def last_seq(snapshot: Snapshot, log: str) -> int:
    """The last number in use; 0 if there is none."""
    return _extent(snapshot, log).max_seq


def read_log(snapshot: Snapshot, log: str, after: int | None, upto: int, limit: int) -> LogPage:
    """Read up to `limit` records with ``after < seq <= upto``; after None, from the oldest on.

    A page ends before records that were set aside as unreadable. Raises `RecordsGone` if the
    records right after `after` were set aside or removed by retention. Raises `CursorAhead` if
    `after` lies beyond the end of the log.
    """
    found = _extent(snapshot, log)
    start = found.min_seq - 1 if after is None else after
    if start < found.min_seq - 1:
        raise RecordsGone(start + 1, found.min_seq)
    if start > found.max_seq:
        raise CursorAhead(start, found.max_seq)
    following = snapshot.value("next", id=found.id, after=start) or found.max_seq + 1
    if following > start + 1:
        if after is not None:
            raise RecordsGone(start + 1, following)
        start = following - 1
    batches = list(_batches(snapshot, found.id, start, min(upto, start + limit)))
    return LogPage(found.min_seq, found.max_seq, batches)


def unreadable_batch(snapshot: Snapshot, log: str, seq: int) -> Exception:
    """The error for the case that the batch with this record has wrong content."""
    return snapshot.unreadable("log_batches", [(_extent(snapshot, log).id, seq)])


def _batches(snapshot: Snapshot, id: int, after: int, upto: int) -> Iterator[LogBatch]:
    size, due = 0, after + 1
    with snapshot.each("batches", id=id, after=after, upto=upto) as rows:
        for first_seq, shared, body, stored in rows:
            start = max(after + 1 - first_seq, 0)
            if first_seq + start != due or first_seq > upto or size > PAGE_BYTES:
                return
            size += len(body)
            if stored is not None and stored != record_checksum(body, shared):
                raise snapshot.unreadable("log_batches", [(id, first_seq)])
            try:
                records = _records.decode(body)[start : upto + 1 - first_seq]
                due += len(records)
                # SQLite answers bytes, so that one batch that is no text is not met at all of them.
                text = shared if isinstance(shared, str) else shared.decode()
                yield LogBatch(first_seq + start, text, records)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                raise snapshot.unreadable("log_batches", [(id, first_seq)]) from None


def _extent(snapshot: Snapshot, log: str) -> _Extent:
    row = next(iter(snapshot.rows("extent", log=log)), None)
    if row is None or not 0 < row[1] <= row[2] + 1:
        raise snapshot.unreadable(ANY_TABLE, ())
    return _Extent(*row[:3])
