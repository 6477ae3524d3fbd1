"""The reads of the inbox."""

import asyncio
from contextlib import suppress

import psycopg

from zq.features.inbox.store import MOST_COUNTED, InboxReads, InboxRow, RefusedRows
from zq.store.errors import StoreError
from zq.store.postgres.connection import SESSION, Connection, connect
from zq.store.postgres.queries import load, rows_of
from zq.store.postgres.readers import PostgresLanes

QUERIES = load("zq.features.inbox.postgres_tick")

MOST_ROWS = 1_000
MOST_BYTES = 4 * 2**20
"""The limits of what is read at once. One row is always read."""

NAMED = 10
"""How many refused rows are named."""


class PostgresInboxReads(InboxReads):
    """The reads of the inbox by a lane of the store, and one connection that listens."""

    is_there = True

    def __init__(self, lanes: PostgresLanes) -> None:
        self._looks = lanes.looks
        self._address = lanes.address
        self._listening: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        """Opens it. A cancelled wait leaves it to `stop_listening`."""

    async def inbox_rows(self, after: int) -> list[InboxRow]:
        page = {"after": after, "limit": MOST_ROWS, "bytes": MOST_BYTES}
        found = await self._looks(rows_of, QUERIES["inbox_rows"], page)
        return [InboxRow(*row) for row in found]

    async def refused(self) -> RefusedRows:
        limit = {"limit": MOST_COUNTED}
        found = await self._looks(rows_of, QUERIES["inbox_refused"], limit)
        return RefusedRows(len(found), tuple([(id, error) for id, error in found[:NAMED]]))

    async def changed(self, seconds: float) -> None:
        if self._listening is None:
            try:
                self._opening = asyncio.create_task(asyncio.to_thread(_listen, self._address))
                self._listening = await asyncio.shield(self._opening)
                # What was written before it listened is not told, so look at once.
                return
            except StoreError:
                await asyncio.sleep(seconds)
                return
        await self._readable(self._listening, seconds)
        try:
            self._listening.pgconn.consume_input()
            while self._listening.pgconn.notifies() is not None:
                pass
        except psycopg.Error:
            await self.stop_listening()

    async def _readable(self, connection: Connection, seconds: float) -> None:
        """Wait for news from PostgreSQL: a notification, or the end of the connection."""
        loop = asyncio.get_running_loop()
        news = asyncio.Event()
        loop.add_reader(connection.fileno(), news.set)
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(connection.fileno())

    async def stop_listening(self) -> None:
        opening, self._opening, self._listening = self._opening, None, None
        if opening is not None:
            with suppress(StoreError):
                await asyncio.to_thread((await opening).close)


def _listen(address: str) -> Connection:
    connection = connect(address, SESSION)
    try:
        connection.execute("LISTEN zq_inbox")
    except psycopg.Error as error:
        connection.close()
        raise StoreError(str(error)) from error
    return connection


READS = {InboxReads: PostgresInboxReads}
