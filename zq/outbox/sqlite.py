"""SQLite as a source: a connection in a thread of its own."""

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from zq.outbox.changes import FileChanges
from zq.outbox.source import (
    IDLE_S,
    MOST_BYTES,
    MOST_ROWS,
    DatabaseUnavailable,
    OutboxLane,
    OutboxRow,
    RefusedRow,
)
from zq.outbox.table import HOW_TO_CREATE

T = TypeVar("T")

SOON_S = 0.001
"""The data version is read so soon after a write, and then at intervals that double.

A commit can be seen only after its last write: SQLite flushes the file in between, and the kernel
tells nothing of the end. So a commit is seen at most as late again as its flush took. Reading the
data version reads shared memory, and no row.
"""

BUSY_S = 30.0

_ROWS = "SELECT id, document FROM zq_outbox WHERE error IS NULL ORDER BY id LIMIT ?"
_ROWS_OF = """\
SELECT rows.id, document FROM json_each(?) AS given JOIN zq_outbox AS rows ON rows.id = given.value
WHERE error IS NULL ORDER BY given.key"""
_DELETE = "DELETE FROM zq_outbox WHERE id IN (SELECT value FROM json_each(?))"
_LANE = "SELECT producer, epoch, first, ids FROM zq_outbox_lane"
_NEW_LANE = """\
INSERT INTO zq_outbox_lane (id, producer, epoch, first, ids) VALUES (1, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING"""
_MOVE = """\
UPDATE zq_outbox_lane SET epoch = ?, first = ?, ids = ?
WHERE epoch = ? AND first = ? AND ids = ?"""
_SET_ASIDE = "UPDATE zq_outbox SET error = ? WHERE id = ?"


class SqliteSource:
    """The outbox in a database file.

    Several relays are safe without a leader: all send the same rows under the same numbers, so the
    server stores each once, and none before the one that was numbered before it.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._file: os.stat_result
        self._changes: FileChanges | None = None
        self._version = 0
        self._pause_s = SOON_S

    async def open(self) -> None:
        """Connect. The file is not made if it is missing."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "zq-outbox")
            await self._run(self._connect)

    async def leads(self) -> bool:
        """Every relay may move rows."""
        return True

    async def lane(self) -> OutboxLane | None:
        return await self._run(self._lane)

    async def make(self, lane: OutboxLane) -> None:
        given = lane.producer, lane.epoch, lane.first, json.dumps(lane.ids)
        await self._run(lambda: self._execute(_NEW_LANE, *given))

    async def move(
        self, lane: OutboxLane, to: OutboxLane, refusal: RefusedRow | None = None
    ) -> bool:
        return await self._run(lambda: self._move(lane, to, refusal))

    async def rows_of(self, ids: Sequence[int]) -> list[OutboxRow]:
        return await self._run(lambda: self._rows_of(ids))

    async def oldest(self) -> list[OutboxRow]:
        return await self._run(self._oldest)

    async def delete(self, ids: Sequence[int]) -> None:
        await self._run(lambda: self._execute(_DELETE, json.dumps(ids)))

    async def changed(self) -> None:
        """Wait until another connection has committed since the last `oldest`."""
        await self._run(self._watch)

    async def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            if self._changes is not None:
                self._changes.end()
            await asyncio.get_running_loop().run_in_executor(thread, self._disconnect)
            thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            missing = "no such table" in str(error)
            hint = f": {HOW_TO_CREATE}" if missing else ""
            raise DatabaseUnavailable(f"{self._path}: {error}{hint}") from error

    # In the thread

    def _connect(self) -> None:
        # Before it is opened: a file that takes its place meanwhile is then noticed.
        self._file = self._stat()
        self._connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=rw",
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        # A number that was given must not be lost with a power cut.
        self._connection.execute("PRAGMA synchronous=EXTRA")
        # SQLite takes any bytes as text, and a document that is no UTF-8 must not stop the others.
        self._connection.text_factory = bytes
        self._changes = FileChanges()
        self._pause_s = SOON_S

    def _stat(self) -> os.stat_result:
        try:
            return self._path.stat()
        except FileNotFoundError:
            raise DatabaseUnavailable(
                f"{self._path} does not exist: sqlite:///a/b.db is the file /a/b.db, and"
                " sqlite:b.db a file in the current directory"
            ) from None

    def _disconnect(self) -> None:
        changes, self._changes = self._changes, None
        if changes is not None:
            changes.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _execute(self, statement: str, *parameters: object) -> int:
        assert self._connection is not None
        with closing(self._connection.execute(statement, parameters)) as cursor:
            return cursor.rowcount

    def _lane(self) -> OutboxLane | None:
        assert self._connection is not None
        for producer, epoch, first, ids in self._connection.execute(_LANE).fetchall():
            return OutboxLane(producer.decode(), epoch.decode(), first, json.loads(ids))
        return None

    def _move(self, lane: OutboxLane, to: OutboxLane, refusal: RefusedRow | None) -> bool:
        assert self._connection is not None
        now, then = ((each.epoch, each.first, json.dumps(each.ids)) for each in (to, lane))
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            moved = bool(self._execute(_MOVE, *now, *then))
            if moved and refusal is not None:
                self._execute(_SET_ASIDE, refusal.error, refusal.id)
            return moved

    def _rows_of(self, ids: Sequence[int]) -> list[OutboxRow]:
        assert self._connection is not None
        found = self._connection.execute(_ROWS_OF, (json.dumps(ids),))
        return [OutboxRow(*row) for row in found.fetchall()]

    def _data_version(self) -> int:
        assert self._connection is not None
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _oldest(self) -> list[OutboxRow]:
        assert self._connection is not None
        # Before the rows: a commit in between is then noticed as a change.
        self._version = self._data_version()
        found: list[OutboxRow] = []
        size = 0
        cursor = self._connection.execute(_ROWS, (MOST_ROWS,))
        try:
            for id, document in cursor:
                size += len(document)
                if found and size > MOST_BYTES:
                    break
                found.append(OutboxRow(id, document))
        finally:
            cursor.close()
        return found

    def _watch(self) -> None:
        changes = self._changes
        assert changes is not None
        # SQLite writes to one of these in each transaction. The log is made and removed at times.
        file = self._path.resolve()
        changes.watch([file, file.with_name(f"{file.name}-wal")])
        until = time.monotonic() + IDLE_S
        while self._data_version() == self._version and not changes.has_ended:
            if not os.path.samestat(self._stat(), self._file):
                raise DatabaseUnavailable(f"{self._path}: another file has taken its place")
            left = until - time.monotonic()
            if left <= 0:
                return
            # The pause outlasts the call: a write that was told of during the call before may
            # belong to a commit that comes during this one.
            written = changes.wait(min(self._pause_s, left))
            self._pause_s = SOON_S if written else min(2 * self._pause_s, IDLE_S)
