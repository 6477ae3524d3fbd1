"""PostgreSQL as a source: one connection of psycopg 3, which also listens."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from zq.client.errors import InvalidOption
from zq.model.addresses import PORTS, SPLIT, UNREADABLE
from zq.outbox.source import (
    IDLE_S,
    MOST_BYTES,
    MOST_ROWS,
    DatabaseUnavailable,
    OutboxLane,
    OutboxRow,
    RefusedRow,
    RelayNotNeeded,
)
from zq.outbox.table import HOW_TO_CREATE

# One relay leads, for the work of the others would be in vain. That is no matter of safety: all
# send the same rows under the same numbers.
_LEAD = "SELECT pg_try_advisory_lock(CAST(CAST('zq_outbox' AS regclass) AS oid)::bigint)"
_ROWS = """\
SELECT id, document FROM (
    SELECT id, document, sum(octet_length(document)) OVER (ORDER BY id) AS size, row_number() OVER (
        ORDER BY id) AS place
    FROM (SELECT id, document FROM zq_outbox WHERE error IS NULL ORDER BY id LIMIT %s) AS oldest
) AS measured WHERE size <= %s OR place = 1 ORDER BY id"""
_ROWS_OF = "SELECT id, document FROM zq_outbox WHERE id = ANY(%s) AND error IS NULL"
_DELETE = "DELETE FROM zq_outbox WHERE id = ANY(%s)"
# Of a database without an encoding, SQL_ASCII, text arrives as bytes, and JSON as what it holds.
_LANE = "SELECT to_json(producer), to_json(epoch), first, ids FROM zq_outbox_lane"
_NEW_LANE = """\
INSERT INTO zq_outbox_lane (id, producer, epoch, first, ids) VALUES (1, %s, %s, %s, %s)
ON CONFLICT (id) DO NOTHING"""
_MOVE = """\
UPDATE zq_outbox_lane SET epoch = %s, first = %s, ids = %s
WHERE epoch = %s AND first = %s AND ids = %s"""
_SET_ASIDE = "UPDATE zq_outbox SET error = %s WHERE id = %s"
_IS_VIEW = "SELECT relkind = 'v' FROM pg_class WHERE oid = to_regclass('zq_outbox')"
# A number that was given must not be lost with a power cut.
_DURABLE = """\
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off'"""


class PostgresSource:
    """The outbox in a database of PostgreSQL."""

    def __init__(self, url: str) -> None:
        """Raises `InvalidOption` if the address cannot be read, without a word of it."""
        try:
            import psycopg
        except ModuleNotFoundError:
            raise InvalidOption(
                "PostgreSQL needs psycopg: pip install 'zq-queue[postgres]'"
            ) from None
        try:
            found = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise InvalidOption(UNREADABLE) from None
        if not (SPLIT.fullmatch(url) and PORTS.fullmatch(str(found.get("port", "")))):
            raise InvalidOption(UNREADABLE)
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
                await self._connection.execute(_DURABLE)
                await self._connection.execute("LISTEN zq_outbox")
                found = await (await self._connection.execute(_IS_VIEW)).fetchone()
            if found == (True,):
                await self.close()
                raise RelayNotNeeded

    async def leads(self) -> bool:
        """True if this connection has the lock of the table. It ends with the connection."""
        if not self._is_leader:
            self._is_leader = bool((await self._fetch(_LEAD))[0][0])
        return self._is_leader

    async def lane(self) -> OutboxLane | None:
        for producer, epoch, first, ids in await self._fetch(_LANE):
            return OutboxLane(producer, epoch, first, json.loads(ids))
        return None

    async def make(self, lane: OutboxLane) -> None:
        await self._execute(_NEW_LANE, lane.producer, lane.epoch, lane.first, json.dumps(lane.ids))

    async def move(
        self, lane: OutboxLane, to: OutboxLane, refusal: RefusedRow | None = None
    ) -> bool:
        now, then = ((each.epoch, each.first, json.dumps(each.ids)) for each in (to, lane))
        async with self._explained(), self._connection.transaction():
            cursor = await self._connection.execute(_MOVE, (*now, *then))
            moved = bool(cursor.rowcount)
            if moved and refusal is not None:
                error = self._storable(refusal.error)
                await self._connection.execute(_SET_ASIDE, (error, refusal.id))
        return moved

    async def rows_of(self, ids: Sequence[int]) -> list[OutboxRow]:
        found = {id: OutboxRow(id, text) for id, text in await self._fetch(_ROWS_OF, list(ids))}
        return [found[id] for id in ids if id in found]

    async def oldest(self) -> list[OutboxRow]:
        return [OutboxRow(*row) for row in await self._fetch(_ROWS, MOST_ROWS, MOST_BYTES)]

    async def delete(self, ids: Sequence[int]) -> None:
        await self._execute(_DELETE, list(ids))

    async def changed(self) -> None:
        """Wait for a notification. Those that came during other statements count."""
        async with self._explained():
            async for _ in self._connection.notifies(timeout=IDLE_S, stop_after=1):
                pass

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        self._is_leader = False
        if connection is not None:
            await connection.close()

    def _storable(self, text: str) -> str:
        """A text without NUL and in the encoding of the database, which takes no other."""
        encoding = self._connection.info.encoding
        escaped: bytes = text.replace("\0", "\\0").encode(encoding, "backslashreplace")
        return escaped.decode(encoding)

    async def _execute(self, statement: str, *parameters: object) -> None:
        async with self._explained():
            await self._connection.execute(statement, parameters)

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
                f"PostgreSQL: {error.diag.message_primary}: {HOW_TO_CREATE}"
            ) from error
        except self._psycopg.Error as error:
            raise DatabaseUnavailable(f"PostgreSQL: {error}") from error
