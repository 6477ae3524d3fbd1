"""Moves everything that one store holds into another one: table by table, in slices.

The source is only read. The target notes with each slice how far it has come, so a move that was
cut off goes on from there. No server starts on a target before its move is complete.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import msgspec

from zq.store.errors import StoreDiffers
from zq.store.identity import renewed

SLICE_ROWS = 5_000
SLICE_BYTES = 4 * 1024 * 1024
"""A slice is written in one transaction. It ends at so many rows or bytes."""

MARK = "moving"
"""The entry of `meta` in which a target notes how far it has come."""

Row = tuple[Any, ...]
"""The values of one row as every store knows them: numbers, texts, bytes and None."""

Progress = Callable[[int, int], object]
"""Called with the number of rows that are done, and the number of all. Each row counts twice: when
it is copied, and when it is compared."""

_encode = msgspec.msgpack.Encoder().encode


class MovedTable(NamedTuple):
    """A table, as every store has it."""

    name: str
    columns: tuple[str, ...]
    """The columns that are stored: first those of the key, then the others by name."""
    width: int
    """How many columns the key has."""

    def key(self, row: Row) -> Row:
        """The key of a row."""
        return row[: self.width]


class MoveMark(msgspec.Struct, frozen=True):
    """How far a move has come: up to a row of a table. Tables are moved by name."""

    source: str
    """The state of the source, by `state_of`."""
    table: str = ""
    key: list[Any] = []


class Sum(NamedTuple):
    """What a table holds, whatever the order of its rows."""

    rows: int
    checksum: str

    def __str__(self) -> str:
        return f"{self.rows:,} rows, {self.checksum}"


class Moved(NamedTuple):
    """The result of a move."""

    tables: dict[str, Sum]
    """What each table holds, by name, in the source and in the target."""
    resumed: int
    """How many rows were in the target already, from a move that was cut off."""


class MoveSide(Protocol):
    """A store that takes part in a move. `meta` is not among its tables."""

    tables: Sequence[MovedTable]

    def meta(self) -> dict[str, str]:
        """What the store says of itself, by name."""

    def count(self, table: MovedTable) -> int:
        """How many rows a table has."""

    def rows(self, table: MovedTable, after: Row | None = None) -> Iterator[Row]:
        """The rows of a table beyond a key, in the order of their keys."""

    def highest_key(self) -> int:
        """The highest key of a job; 0 if there is none."""


class MoveTarget(MoveSide, Protocol):
    """A store that is filled. `meta` has its `MARK` until it is complete."""

    def empty(self, mark: str) -> None:
        """Delete every row, and begin with this mark."""

    def write(self, table: MovedTable, rows: Sequence[Row], mark: str) -> None:
        """Store a slice and the mark together. Raises `StoreError`."""

    def complete(self, meta: dict[str, str]) -> None:
        """Put `meta` in the place of its own, without a mark: servers may start then."""


def state_of(source: MoveSide) -> str:
    """Names what a stopped server has left: each of its starts and stops changes that."""
    return blake2b(_encode(sorted(source.meta().items())), digest_size=16).hexdigest()


def move(source: MoveSide, target: MoveTarget, progress: Progress) -> Moved:
    """Fill a target from a source, compare them, and complete the target.

    The target gets an identity of its own, as a restored copy does. Raises `StoreDiffers` if a
    table of the target does not hold what the source has, or `StoreError`.
    """
    mark = _begin(target, state_of(source))
    total = 2 * sum(source.count(table) for table in source.tables)
    resumed = done = sum(target.count(table) for table in target.tables)
    for table in source.tables:
        if table.name < mark.table:
            continue
        after = tuple(mark.key) if table.name == mark.table else None
        for rows in _slices(source.rows(table, after)):
            come = MoveMark(mark.source, table.name, list(table.key(rows[-1])))
            target.write(table, rows, _text(come))
            done += len(rows)
            progress(done, total)
    sums: dict[str, Sum] = {}
    differing: list[str] = []
    for table in source.tables:
        sums[table.name] = ours = _sum(source.rows(table))
        theirs = _sum(target.rows(table))
        if theirs != ours:
            differing.append(f"{table.name} ({ours} in the source, {theirs} in the target)")
        done += ours.rows
        progress(done, total)
    if differing:
        # What was written is of no use, so the next move begins anew.
        target.empty(_text(MoveMark("")))
        raise StoreDiffers(f"what was written is not what was read: {', '.join(differing)}")
    meta = source.meta()
    target.complete({**meta, **renewed(meta, source.highest_key())})
    return Moved(sums, resumed)


def _begin(target: MoveTarget, source: str) -> MoveMark:
    """The mark of an earlier move from the same state of the same source, or a new one."""
    if noted := target.meta().get(MARK):
        mark = msgspec.json.decode(noted, type=MoveMark)
        if mark.source == source:
            return mark
    mark = MoveMark(source)
    target.empty(_text(mark))
    return mark


def _slices(rows: Iterator[Row]) -> Iterator[list[Row]]:
    slice: list[Row] = []
    size = 0
    for row in rows:
        slice.append(row)
        size += sum([len(value) for value in row if isinstance(value, str | bytes)])
        if len(slice) == SLICE_ROWS or size > SLICE_BYTES:
            yield slice
            slice, size = [], 0
    if slice:
        yield slice


def _text(mark: MoveMark) -> str:
    return msgspec.json.encode(mark).decode()


def _sum(rows: Iterator[Row]) -> Sum:
    """Add up the digests of rows, so that their order plays no part: stores sort differently."""
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(blake2b(_encode(row), digest_size=16).digest())
    return Sum(count, f"{total % (1 << 128):032x}")
