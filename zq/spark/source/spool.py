"""The rows of a task, written down: in an order that depends on nothing but what they hold.

Numbers need an order that is the same whenever a task runs, and Spark computes rows again in
whatever order a shuffle brings them. So a task writes all its jobs to a temporary file before it
sends the first one, and sends them by a key of theirs and by a digest of what they hold. Equal jobs
stand beside each other, where their order does not matter.
"""

import hashlib
import tempfile
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from zq.spark.errors import SourceError

AT_ONCE = 10_000
"""The most rows that are Python objects at a time. The others need about 40 bytes of memory
each."""


class SpooledJob(NamedTuple):
    """A job as JSON. `number` is the place of its row among those of the task."""

    number: int
    content: bytes
    digest: bytes


class Spool:
    """The jobs of one task. Add all, then read them."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._ends = array("Q", [0])
        self._numbers = array("Q")
        self._digests: list[bytes] = []
        self._keys: list[Any] = []
        self._tables: list[pa.Table] = []
        self._order: pa.Array | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int, content: bytes, key: Any) -> None:
        """Write down a job. `key` comes first in the order; None comes last."""
        self._file.write(content)
        self._ends.append(self._ends[-1] + len(content))
        self._numbers.append(number)
        self._digests.append(hashlib.blake2b(content, digest_size=16).digest())
        self._keys.append(key)
        if len(self._keys) == AT_ONCE:
            self._gather()

    def name(self) -> str:
        """A digest of all jobs in their order."""
        found = hashlib.blake2b(digest_size=12)
        for _, digests in self._slices():
            found.update(b"".join(digests))
        return found.hexdigest()

    def in_order(self) -> Iterator[SpooledJob]:
        """All jobs."""
        for places, digests in self._slices():
            for place, digest in zip(places, digests, strict=True):
                begin, end = self._ends[place], self._ends[place + 1]
                self._file.seek(begin)
                yield SpooledJob(self._numbers[place], self._file.read(end - begin), digest)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def _gather(self) -> None:
        try:
            keys = pa.array(self._keys)
        except pa.ArrowException as error:
            raise _no_order(error) from None
        self._tables.append(pa.table({"key": keys, "digest": pa.array(self._digests, pa.binary())}))
        self._keys, self._digests = [], []

    def _slices(self) -> Iterator[tuple[list[int], list[bytes]]]:
        """Places in the file with their digests, in order."""
        if self._keys or not self._tables:
            self._gather()
        rows = pa.concat_tables(self._tables, promote_options="permissive")
        if self._order is None:
            by = [(name, "ascending") for name in ("key", "digest")]
            if pa.types.is_null(rows.schema.field("key").type):
                by = by[1:]
            try:
                self._order = pc.sort_indices(rows, sort_keys=by)
            except pa.ArrowException as error:
                raise _no_order(error) from None
        for start in range(0, len(self), AT_ONCE):
            places = self._order[start : start + AT_ONCE]
            yield places.to_pylist(), rows["digest"].take(places).to_pylist()


def _no_order(error: Exception) -> SourceError:
    return SourceError(f"orderBy: rows have no order by these values: {error}")
