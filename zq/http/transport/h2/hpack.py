"""Compression of headers. Headers repeat, so most results can be used again.

A block that does not change its table means the same until the table changes.
"""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from hpack import Decoder, Encoder, HeaderTuple
from hpack.table import HeaderTable

K = TypeVar("K")
V = TypeVar("V")

_MOST_KNOWN = 64


class _Table(HeaderTable):
    """Counts its changes, of entries and of sizes. After each, a block may mean another thing."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0

    def add(self, name: bytes, value: bytes) -> None:
        was_empty = not self.dynamic_entries
        super().add(name, value)
        # An entry that is too large for the table, which may have no room at all, only empties it.
        if not was_empty or self.dynamic_entries:
            self.changes += 1

    @property
    def maxsize(self) -> int:
        return self._maxsize

    @maxsize.setter
    def maxsize(self, size: int) -> None:
        # A table that was made small and then large again has its old size, but is empty.
        HeaderTable.maxsize.fset(self, size)  # type: ignore[attr-defined]
        self.changes += 1


class _Known(Generic[K, V]):
    """Results that are valid for one state of a table."""

    def __init__(self, table: _Table) -> None:
        self._table = table
        self._state = table.changes
        self._known: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The result for `key`, if the table has not changed since."""
        if self._table.changes != self._state:
            self._state = self._table.changes
            self._known.clear()
        return self._known.get(key)

    def keep(self, key: K, value: V) -> None:
        """Remember a result, unless the work for it has changed the table."""
        if self._table.changes == self._state:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = value


class RepeatingEncoder(Encoder):
    """Encodes the heads of answers."""

    def __init__(self) -> None:
        super().__init__()
        self.header_table: _Table = _Table()
        self._known: _Known[tuple[Any, ...], bytes] = _Known(self.header_table)

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        """A header block of (name, value) pairs."""
        key = tuple(headers)
        known = self._known.get(key)
        if self.header_table.resized:
            return super().encode(key, huffman)  # The library tells the new size in one block.
        if known is None:
            known = super().encode(key, huffman)
            self._known.keep(key, known)
        return known


class RepeatingDecoder(Decoder):
    """Decodes the heads of requests."""

    def __init__(self) -> None:
        super().__init__()
        self.header_table: _Table = _Table()
        self._known: _Known[tuple[bytes, bool], tuple[HeaderTuple, ...]] = _Known(self.header_table)

    def decode(self, data: bytes, raw: bool = False) -> Iterable[HeaderTuple]:
        """The fields of a header block. Raises HPACKError."""
        known = self._known.get((data, raw))
        if known is None:
            known = tuple(super().decode(data, raw))
            self._known.keep((data, raw), known)
        return known
