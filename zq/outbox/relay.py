"""The relay: moves the committed rows of an outbox to the server, in order, each exactly once.

A row is sent, then deleted. Whatever ends between the two, the row is sent again, and the server
recognises it by its dedupe id. It does so for a day, so the relay notes when it first sends a row,
and after almost a day it does not send the row again. Rows are read ahead, but none is sent before
the server has stored those that were read before it.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Self

from zq.client.app import App
from zq.client.errors import BackendError, InvalidOption, InvalidPayload, Unavailable
from zq.client.http.transport import jittered
from zq.client.loggers import keep_loggers
from zq.model.errors import InvalidRequest, ZqError
from zq.outbox.address import source_at
from zq.outbox.document import WINDOW_MS, OutboxJob, job_of
from zq.outbox.source import DatabaseUnavailable, OutboxRow

STANDBY_S = 1.0
"""How often a relay looks whether the one that leads has ended."""

LATE_MS = WINDOW_MS - 3_600_000
"""How long a row may be sent again. The server's clock may be an hour ahead."""

LOOK_EVERY_MS = 60_000
"""How often a relay looks for rows that are too late. That reads the whole table."""

LATE = (
    "its answer got lost, and the server may have forgotten it since then: look whether its job was"
    " stored; then delete the row, or set its error to NULL to send it"
)

OF_THE_JOBS = (None, 400, 413, 422)
"""Statuses of refusals that are due to the jobs. The embedded engine has no status."""

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
        self._running: asyncio.Task[None] | None = None
        self._state = ""
        self._looked = 0

    async def run(self) -> None:
        """Move rows until it is cancelled. While the database or the server is away, it waits."""
        failures = 0
        self._state = ""
        keep_loggers()
        try:
            while True:
                try:
                    await self._source.open()
                    while await self._source.leads():
                        self._tell("working")
                        await self._move()
                        failures = 0
                        await self._source.changed()
                    self._tell("standing by: another relay moves the rows")
                    await asyncio.sleep(STANDBY_S)
                except ZqError as error:
                    if isinstance(error, DatabaseUnavailable):
                        await self._source.close()
                    log.warning("waiting", extra={"fields": {"error": error.message}})
                    await asyncio.sleep(jittered(failures))
                    failures += 1
        finally:
            await self._source.close()

    async def run_until_empty(self) -> int:
        """Move the rows that are there. Return their number. Raises the first error."""
        try:
            await self._source.open()
            return await self._move()
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
        await self._leave_late_rows()
        rows = await self._source.rows()
        while rows:
            moved += len(rows)
            rows = await self._send(rows) or await self._source.rows()
        return moved

    async def _send(self, rows: Sequence[OutboxRow]) -> Sequence[OutboxRow]:
        """Send rows, and delete them. Return those that were read meanwhile.

        A refused request is halved until the bad row is found.
        """
        left, most, last = list(rows), MOST_AT_ONCE, rows[-1].id
        noted = await self._source.mark(last, now_ms())
        while left:
            try:
                return await self._stream(left, most)
            except ZqError as error:
                if not _is_of_the_jobs(error):
                    if noted and _is_certain(error):
                        await self._source.unmark(last)
                    raise
                refused = len(next(_batches(left, most)))
                if refused == 1:
                    await self._refuse(left.pop(0).id, error)
                most = refused // 2 or MOST_AT_ONCE
        return ()

    async def _stream(self, left: list[OutboxRow], most: int) -> Sequence[OutboxRow]:
        """Send rows in requests of so many, and take those off the list that were deleted."""
        ahead: Sequence[OutboxRow] = ()
        jobs = (list(map(_job, batch)) for batch in _batches(tuple(left), most))
        async with aclosing(self._app.backend.enqueue_each(jobs)) as answers:
            async for stored in answers:
                await self._source.delete([row.id for row in left[: len(stored)]])
                log.debug("moved", extra={"fields": {"rows": len(stored)}})
                del left[: len(stored)]
                if not ahead and 0 < len(left) <= most:
                    ahead = await self._read_beside(left)
        return ahead

    async def _read_beside(self, under_way: Sequence[OutboxRow]) -> Sequence[OutboxRow]:
        """The oldest rows but for these. A row with a smaller id may have become visible."""
        ids = {row.id for row in under_way}
        return [row for row in await self._source.rows() if row.id not in ids]

    async def _leave_late_rows(self) -> None:
        """Set aside the rows that the server may have stored, and no longer recognises."""
        now = now_ms()
        if now - self._looked >= LOOK_EVERY_MS:
            late = await self._source.set_aside_late(now - LATE_MS, LATE)
            self._looked = now
            if late:
                log.error("too late to send again", extra={"fields": {"rows": late, "error": LATE}})

    async def _refuse(self, id: int, error: ZqError) -> None:
        await self._source.set_aside(id, error.message)
        log.error("refused", extra={"fields": {"row": id, "error": error.message}})


def now_ms() -> int:
    """The time in milliseconds."""
    return time.time_ns() // 1_000_000


def _batches(rows: Sequence[OutboxRow], most: int) -> Iterator[Sequence[OutboxRow]]:
    """The rows of each request."""
    begin = size = 0
    for at, row in enumerate(rows):
        size += len(row.document)
        if at > begin and (at - begin == most or size > MOST_BYTES_AT_ONCE):
            yield rows[begin:at]
            begin, size = at, len(row.document)
    if begin < len(rows):
        yield rows[begin:]


def _job(row: OutboxRow) -> OutboxJob:
    return job_of(row.document)


def _is_certain(error: ZqError) -> bool:
    """True if the refused request has stored nothing, nor an earlier try of it."""
    return isinstance(error, BackendError) and not error.in_doubt


def _is_of_the_jobs(error: ZqError) -> bool:
    """True if the jobs are at fault, and not the server, a proxy or the access key."""
    if isinstance(error, InvalidRequest | InvalidPayload):
        return True
    if not isinstance(error, BackendError) or isinstance(error, Unavailable):
        return False
    if error.code == "http_413":
        return True
    ours = error.code != BackendError.code and not error.code.startswith("http_")
    return ours and error.status in OF_THE_JOBS
