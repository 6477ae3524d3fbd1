"""The relay: moves the committed rows of an outbox to the server, in order, each exactly once.

A row gets a number, is sent, then deleted. Whatever ends in between, the row is sent again under
its number, and the server recognises it (`zq.outbox.numbering`). Rows are read ahead, but none is
sent before the server has stored those that were read before it.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Self

from zq.client.app import App
from zq.client.core import keep_loggers
from zq.client.errors import InvalidOption, concerns_jobs, concerns_numbers, cut_of
from zq.client.http.transport import jittered
from zq.model.errors import QueueFull, ZqError
from zq.outbox.numbering import NumberedRows, RowNumbers
from zq.outbox.source import (
    DatabaseUnavailable,
    OutboxLane,
    OutboxRow,
    RefusedRow,
    RelayNotNeeded,
    Source,
)
from zq.outbox.table import Dialect
from zq.outbox.writing import job_of

STANDBY_S = 1.0
"""How often a relay looks whether the one that leads has ended."""

NOT_NEEDED_S = 60.0
"""How often a relay without work looks whether there is some."""

MOST_AT_ONCE = 2000
MOST_BYTES_AT_ONCE = 4 * 2**20
"""The limits of a request. One row is always sent."""

log = logging.getLogger("zq.relay")


class Relay:
    """Moves the rows of one database to the server of an app.

    ``async with Relay(app, url):`` does so in the background. ``app.while_working(relay.run)`` lets
    the app's workers do it.
    """

    def __init__(self, app: App, database: str) -> None:
        """Nothing is opened yet. Raises `InvalidOption`."""
        self._app = app
        if not isinstance(app, App):
            raise InvalidOption(f"{app!r} is not a zq.App: write outbox.Relay(app, address)")
        self._source = source_at(database)
        self._numbering = RowNumbers(self._source, app.backend)
        self._running: asyncio.Task[None] | None = None
        self._state = ""

    async def run(self) -> None:
        """Move rows until it is cancelled. While the database or the server is away, it waits.

        Where the server takes the rows by itself, it has nothing to do.
        """
        failures = 0
        self._state = ""
        keep_loggers()
        try:
            while True:
                try:
                    await self._source.open()
                    self._numbering.doubt()
                    while await self._source.leads():
                        self._tell("working")
                        await self._move()
                        failures = 0
                        await self._source.changed()
                    self._tell("standing by: another relay moves the rows")
                    await asyncio.sleep(STANDBY_S)
                except RelayNotNeeded as error:
                    self._tell(error.message)
                    await asyncio.sleep(NOT_NEEDED_S)
                except ZqError as error:
                    if isinstance(error, DatabaseUnavailable):
                        await self._source.close()
                    log.warning("waiting", extra={"fields": {"error": error.message}})
                    await asyncio.sleep(jittered(failures))
                    failures += 1
                except Exception as error:
                    await self._source.close()
                    log.error("the relay has failed and tries again", exc_info=error)
                    await asyncio.sleep(jittered(failures))
                    failures += 1
        finally:
            await self._source.close()

    async def run_until_empty(self) -> int:
        """Move the rows that are there. Return their number. Raises the first error."""
        try:
            await self._source.open()
            self._numbering.doubt()
            return await self._move()
        except RelayNotNeeded as error:
            self._tell(error.message)
            return 0
        finally:
            await self._source.close()

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])

    def _tell(self, state: str) -> None:
        """Log what the relay does, when that changes."""
        if state != self._state:
            self._state = state
            log.info(state)

    async def _move(self) -> int:
        """Move rows until none is left. Return their number."""
        moved = 0
        batch = await self._numbering.batch()
        while batch:
            sent, ahead = await self._send(batch)
            moved += sent
            batch = ahead or await self._numbering.batch()
        return moved

    async def _send(self, batch: NumberedRows) -> tuple[int, NumberedRows | None]:
        """Send rows, and delete them. Return their number, and rows that were read meanwhile.

        A refused request is cut until the bad row is found. The rows after that one have lost
        their numbers, and are for another batch. A queue that is full gets as many rows as it has
        room for.
        """
        lane, number, rows = batch
        most, at = MOST_AT_ONCE, 0
        stored: Sequence[OutboxRow] = ()
        ahead: NumberedRows | None = None
        while at < len(rows):
            some = _first(rows[at:], most)
            last = some if at + len(some) == len(rows) and ahead is None else ()
            trouble, read = await asyncio.gather(
                self._store(lane, number + at, some), self._beside(stored, batch, last)
            )
            stored, ahead = (), ahead or read
            if trouble is None:
                stored = some
                at += len(some)
            elif concerns_numbers(trouble):
                self._numbering.doubt()
                return at, None
            elif len(some) > 1 and (concerns_jobs(trouble) or trouble.code == QueueFull.code):
                most = cut_of(trouble, len(some))
            elif not concerns_jobs(trouble):
                raise trouble
            else:
                refusal = RefusedRow(some[0].id, trouble.message)
                await self._numbering.refuse(lane, number + at, refusal)
                return at + 1, None
        await self._source.delete([row.id for row in stored])
        return at, ahead

    async def _store(
        self, lane: OutboxLane, number: int, rows: Sequence[OutboxRow]
    ) -> ZqError | None:
        """Send one request. Return its error, if it has one."""
        try:
            await self._numbering.store(lane, number, [job_of(row.document) for row in rows])
        except ZqError as error:
            return error
        log.debug("moved", extra={"fields": {"rows": len(rows)}})
        return None

    async def _beside(
        self, stored: Sequence[OutboxRow], batch: NumberedRows, last: Sequence[OutboxRow]
    ) -> NumberedRows | None:
        """Do what can be done while a request is under way, which has these last rows or none.

        Delete the rows of the request before, and read the ones that come next.
        """
        if stored:
            await self._source.delete([row.id for row in stored])
        return await self._numbering.ahead(batch, last) if last else None


def _first(rows: Sequence[OutboxRow], most: int) -> Sequence[OutboxRow]:
    """The rows of a request: at most `most`, and not too many bytes."""
    size = 0
    for at, row in enumerate(rows[:most]):
        size += len(row.document)
        if at and size > MOST_BYTES_AT_ONCE:
            return rows[:at]
    return rows[:most]


def source_at(url: str) -> Source:
    """The source for an address. Nothing is opened yet. Raises `InvalidOption`."""
    rest = url.partition(":")[2]
    if dialect_of(url) == "postgresql":
        from zq.outbox.postgres import PostgresSource

        return PostgresSource(f"postgresql:{rest}")
    from zq.outbox.sqlite import SqliteSource

    path = rest.removeprefix("//")
    # Other libraries write an absolute path behind three slashes, so that there are four.
    return SqliteSource(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def dialect_of(url: str) -> Dialect:
    """The dialect of the database at an address. Raises `InvalidOption`."""
    scheme, colon, _ = url.partition(":")
    scheme = scheme.partition("+")[0]  # SQLAlchemy's addresses name a driver there
    if colon and scheme in ("postgresql", "postgres"):
        return "postgresql"
    if colon and scheme == "sqlite":
        return "sqlite"
    raise InvalidOption(
        f"{scheme}{colon and ':…'} is not the address of a database: write"
        " postgresql://user@host/name, or sqlite:///path/of/the/file"
    )
