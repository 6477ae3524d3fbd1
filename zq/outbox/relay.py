"""The relay: moves the committed rows of an outbox to the server, in order, each exactly once.

A row is sent, then deleted. Whatever ends between the two, the row is sent again, and the server
recognises it by its dedupe id.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple, Self

from zq.client.app import App
from zq.client.errors import BackendError, InvalidPayload, Unavailable
from zq.client.http.transport import jittered
from zq.model.errors import InvalidRequest, ZqError
from zq.outbox.address import source_at
from zq.outbox.document import OutboxJob, job_of
from zq.outbox.source import DatabaseUnavailable

STANDBY_S = 1.0
"""How often a relay looks whether the one that leads has ended."""

OF_THE_JOBS = (None, 400, 413, 422)
"""Statuses of refusals that are due to the jobs. The embedded engine has no status."""

log = logging.getLogger("zq.relay")


class _Outgoing(NamedTuple):
    id: int
    job: OutboxJob


class Relay:
    """Moves the rows of one database to the server of an app.

    ``async with Relay(app, url):`` does so in the background. ``app.while_working(relay.run)`` lets
    the app's workers do it.
    """

    def __init__(self, app: App, database: str) -> None:
        """Nothing is opened yet. Raises `InvalidOption`."""
        self._app = app
        self._source = source_at(database)
        self._running: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Move rows until it is cancelled. While the database or the server is away, it waits."""
        failures = 0
        try:
            while True:
                try:
                    await self._source.open()
                    while await self._source.leads():
                        if not await self._move():
                            await self._source.changed()
                        failures = 0
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
        moved = 0
        try:
            await self._source.open()
            while count := await self._move():
                moved += count
        finally:
            await self._source.close()
        return moved

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.wait([running])

    async def _move(self) -> int:
        rows = await self._source.rows()
        outgoing = []
        for row in rows:
            try:
                outgoing.append(_Outgoing(row.id, job_of(row.document)))
            except InvalidPayload as error:
                await self._refuse(row.id, error)
        if outgoing:
            await self._send(outgoing)
        return len(rows)

    async def _send(self, rows: Sequence[_Outgoing]) -> None:
        """Send rows and delete them. Refused ones are halved until the bad row is found."""
        try:
            await self._app.backend.enqueue([row.job for row in rows])
        except ZqError as error:
            if not _is_of_the_jobs(error):
                raise
            if len(rows) == 1:
                await self._refuse(rows[0].id, error)
                return
            half = len(rows) // 2
            await self._send(rows[:half])
            await self._send(rows[half:])
            return
        await self._source.delete([row.id for row in rows])
        log.debug("moved", extra={"fields": {"rows": len(rows)}})

    async def _refuse(self, id: int, error: ZqError) -> None:
        await self._source.set_aside(id, error.message)
        log.error("refused", extra={"fields": {"row": id, "error": error.message}})


def _is_of_the_jobs(error: ZqError) -> bool:
    """Whether the jobs are at fault, and not the server, a proxy or the access key."""
    if isinstance(error, InvalidRequest | InvalidPayload):
        return True
    if not isinstance(error, BackendError) or isinstance(error, Unavailable):
        return False
    if error.code == "http_413":
        return True
    ours = error.code != BackendError.code and not error.code.startswith("http_")
    return ours and error.status in OF_THE_JOBS
