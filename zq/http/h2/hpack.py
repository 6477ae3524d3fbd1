"""Compression of answers' headers. They repeat, so what is encoded once is mostly good again."""

from collections.abc import Iterable
from typing import Any

from hpack import Encoder
from hpack.table import HeaderTable

_MOST_KNOWN = 256


class _Table(HeaderTable):
    """Counts the entries that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.added = 0

    def add(self, name: bytes, value: bytes) -> None:
        super().add(name, value)
        self.added += 1


class RepeatingEncoder(Encoder):
    """Remembers each block that left the table as it was, until the table changes."""

    def __init__(self) -> None:
        super().__init__()
        self.header_table: _Table = _Table()
        self._known: dict[tuple[Any, ...], bytes] = {}

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        """A header block of (name, value) pairs."""
        table = self.header_table
        added = -1 if table.resized else table.added  # a block that tells the size is not repeated
        key = tuple(headers)
        if added >= 0 and (block := self._known.get(key)) is not None:
            return block
        block = super().encode(key, huffman)
        if added != table.added or len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        if added == table.added:
            self._known[key] = block
        return block
