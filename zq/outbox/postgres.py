"""PostgreSQL as a source: one connection of psycopg 3, which also listens."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from zq.client.errors import InvalidOption
from zq.outbox.source import IDLE_S, MOST_BYTES, MOST_ROWS, DatabaseUnavailable, OutboxRow
from zq.outbox.table import HOW_TO_CREATE

# One relay leads, for the work of the others would be in vain. That is no matter of safety: a relay
# sends a row after all older ones that are left, and the server knows what it has seen.
_LEAD = "SELECT pg_try_advisory_lock(CAST(CAST('zq_outbox' AS regclass) AS oid)::bigint)"
_ROWS = """\
SELECT id, document FROM (
    SELECT id, document, sum(octet_length(document)) OVER (ORDER BY id) AS size, row_number() OVER (
        ORDER BY id) AS place
    FROM (SELECT id, document FROM zq_outbox WHERE error IS NULL ORDER BY id LIMIT %s) AS oldest
) AS measured WHERE size <= %s OR place = 1 ORDER BY id"""
_DELETE = "DELETE FROM zq_outbox WHERE id = ANY(%s)"
_SET_ASIDE = "UPDATE zq_outbox SET error = %s, sent = NULL WHERE id = %s"
_MARK = "UPDATE zq_outbox SET sent = %s WHERE id = %s AND sent IS NULL"
_UNMARK = "UPDATE zq_outbox SET sent = NULL WHERE id = %s"
_SET_ASIDE_LATE = """\
UPDATE zq_outbox SET error = %s, sent = NULL WHERE error IS NULL AND id <= (
    SELECT max(id) FROM zq_outbox WHERE sent < %s AND error IS NULL)"""


class PostgresSource:
    """The outbox in a database of PostgreSQL."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError:
            raise InvalidOption(
                "PostgreSQL needs psycopg: pip install 'zq-queue[outbox-postgres]'"
            ) from None
        self._psycopg = psycopg
        self._url = url
        self._connection: Any = None
        self._is_leader = False

    async def open(self) -> None:
        """Connect, and listen from now on."""
        if self._connection is None:
            async with self._explained():
                self._connection = await self._psycopg.AsyncConnection.connect(
                    self._url, autocommit=True, application_name="zq relay", connect_timeout=10
                )
                await self._connection.execute("LISTEN zq_outbox")

    async def leads(self) -> bool:
        """True if this connection has the lock of the table. It ends with the connection."""
        if not self._is_leader:
            self._is_leader = bool((await self._fetch(_LEAD))[0][0])
        return self._is_leader

    async def rows(self) -> Sequence[OutboxRow]:
        """The oldest rows, by id."""
        return [OutboxRow(*row) for row in await self._fetch(_ROWS, MOST_ROWS, MOST_BYTES)]

    async def mark(self, id: int, now: int) -> bool:
        """Note that the rows up to this one are sent now."""
        return bool(await self._execute(_MARK, now, id))

    async def unmark(self, id: int) -> None:
        """Take the note back."""
        await self._execute(_UNMARK, id)

    async def delete(self, ids: Sequence[int]) -> None:
        """Delete these rows."""
        await self._execute(_DELETE, list(ids))

    async def set_aside(self, id: int, error: str) -> None:
        """Keep a row that the server refuses, out of the way."""
        await self._execute(_SET_ASIDE, error, id)

    async def set_aside_late(self, before: int, error: str) -> int:
        """Keep the rows that may have been sent before this moment, out of the way."""
        return await self._execute(_SET_ASIDE_LATE, error, before)

    async def changed(self) -> None:
        """Wait for a notification. Those that came during other statements count."""
        async with self._explained():
            async for _ in self._connection.notifies(timeout=IDLE_S, stop_after=1):
                pass

    async def close(self) -> None:
        """Disconnect."""
        connection, self._connection = self._connection, None
        self._is_leader = False
        if connection is not None:
            await connection.close()

    async def _execute(self, statement: str, *parameters: object) -> int:
        async with self._explained():
            cursor = await self._connection.execute(statement, parameters)
        return int(cursor.rowcount)

    async def _fetch(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        async with self._explained():
            cursor = await self._connection.execute(statement, parameters)
            found: list[tuple[Any, ...]] = await cursor.fetchall()
        return found

    @asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        try:
            yield
        except self._psycopg.errors.UndefinedTable as error:
            raise DatabaseUnavailable(
                f"the database has no table zq_outbox: {HOW_TO_CREATE}"
            ) from error
        except self._psycopg.Error as error:
            raise DatabaseUnavailable(f"PostgreSQL: {error}") from error
