"""The reads of groups of failures."""

import sqlite3
from collections.abc import Sequence

import msgspec

from zq.features.failures.model import FailureRow
from zq.features.failures.store import FailureReads
from zq.store.api import as_json
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.lookups import text_of
from zq.store.sqlite.queries import load

_rows = msgspec.json.Decoder(list[FailureRow])


class SqliteFailureReads(FailureReads):
    """The reads of failures by the lanes of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._lanes = lanes

    async def failures(self, since: int, bar: int, length: int) -> list[FailureRow]:
        return await self._lanes.views(_failures, since, bar, length)

    async def dead_of(
        self, signatures: Sequence[str], queues: Sequence[str] | None, most: int
    ) -> dict[str, tuple[int, bool]]:
        return await self._lanes.views(_dead_of, signatures, queues, most)


def _failures(
    connection: sqlite3.Connection, since: int, bar: int, length: int
) -> list[FailureRow]:
    """The groups of failures by queue that have come since a time, with their bars."""
    asked: dict[str, object] = {"since": since, "bar": bar, "length": length}
    return _rows.decode(
        text_of(connection, load("zq.features.failures.sqlite_tick")["failures_since"], asked)
    )


def _dead_of(
    connection: sqlite3.Connection,
    signatures: Sequence[str],
    queues: Sequence[str] | None,
    most: int,
) -> dict[str, tuple[int, bool]]:
    """How many jobs are dead of each group, and whether it has more failures than `most`."""
    sql = load("zq.features.failures.sqlite_tick")["dead_of_cause"]
    asked = {"queues": None if queues is None else as_json(queues), "most": most}
    found = {}
    for signature in signatures:
        dead, looked = connection.execute(sql, {**asked, "signature": signature}).fetchone()
        found[signature] = dead, looked == most
    return found


READS = {FailureReads: SqliteFailureReads}
