"""SQLite as a source: a connection in a thread of its own."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from zq.outbox.changes import FileChanges
from zq.outbox.source import IDLE_S, MOST_BYTES, MOST_ROWS, DatabaseUnavailable, OutboxRow
from zq.outbox.table import HOW_TO_CREATE

T = TypeVar("T")

SOON_S = 0.001
"""The data version is read so soon after a write, and then at intervals that double up to `LATE_S`.

A commit can be seen only after its last write: SQLite flushes the file in between. Reading the data
version reads shared memory, and no row.
"""

LATE_S = 0.5

BUSY_S = 30.0

_ROWS = "SELECT id, document FROM zq_outbox WHERE error IS NULL ORDER BY id LIMIT ?"
_DELETE = "DELETE FROM zq_outbox WHERE id IN (SELECT value FROM json_each(?))"
_SET_ASIDE = "UPDATE zq_outbox SET error = ?, sent = NULL WHERE id = ?"
_MARK = "UPDATE zq_outbox SET sent = ? WHERE id = ? AND sent IS NULL"
_UNMARK = "UPDATE zq_outbox SET sent = NULL WHERE id = ?"
_LATEST = "SELECT max(id) FROM zq_outbox WHERE sent < ? AND error IS NULL"
_SET_ASIDE_LATE = "UPDATE zq_outbox SET error = ?, sent = NULL WHERE id <= ? AND error IS NULL"


class SqliteSource:
    """The outbox in a database file.

    Several relays are safe without a leader. A relay sends a row after all older ones that are
    left, so no row overtakes another one; and the server knows what it has seen already.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._changes: FileChanges | None = None
        self._version = 0

    async def open(self) -> None:
        """Connect. The file is not made if it is missing."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "zq-outbox")
            await self._run(self._connect)

    async def leads(self) -> bool:
        """Every relay may move rows."""
        return True

    async def rows(self) -> Sequence[OutboxRow]:
        """The oldest rows, by id."""
        return await self._run(self._read)

    async def mark(self, id: int, now: int) -> bool:
        """Note that the rows up to this one are sent now."""
        return bool(await self._run(lambda: self._execute(_MARK, now, id)))

    async def unmark(self, id: int) -> None:
        """Take the note back."""
        await self._run(lambda: self._execute(_UNMARK, id))

    async def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows."""
        await self._run(lambda: self._execute(_DELETE, json.dumps(ids)))

    async def set_aside(self, id: int, error: str) -> None:
        """Keep a row that the server refuses, out of the way."""
        await self._run(lambda: self._execute(_SET_ASIDE, error, id))

    async def set_aside_late(self, before: int, error: str) -> int:
        """Keep the rows that may have been sent before this moment, out of the way."""
        return await self._run(lambda: self._set_aside_late(before, error))

    async def changed(self) -> None:
        """Wait until another connection has committed since the last `rows`."""
        await self._run(self._watch)

    async def close(self) -> None:
        """Disconnect."""
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
        if not self._path.exists():
            raise DatabaseUnavailable(
                f"{self._path} does not exist: sqlite:///a/b.db is the file /a/b.db, and"
                " sqlite:b.db a file in the current directory"
            )
        self._connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=rw",
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )

        self._changes = FileChanges()

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

    def _set_aside_late(self, before: int, error: str) -> int:
        assert self._connection is not None
        # A query first: a change waits for whoever writes, also if it changes nothing.
        (latest,) = self._connection.execute(_LATEST, (before,)).fetchone()
        return 0 if latest is None else self._execute(_SET_ASIDE_LATE, error, latest)

    def _data_version(self) -> int:
        assert self._connection is not None
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def _read(self) -> list[OutboxRow]:
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
        pause = 0.0
        while self._data_version() == self._version and not changes.has_ended:
            left = until - time.monotonic()
            if left <= 0:
                return
            written = changes.wait(min(pause or left, left))
            pause = SOON_S if written else 2 * pause
            if pause > LATE_S:
                pause = 0.0
