"""Takes in the jobs that others have written into the inbox."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from typing import Self

from zq.features.inbox.model import RefuseRow, RowsChanged, TakeRows
from zq.features.inbox.service import InboxState
from zq.features.inbox.store import InboxReads, InboxRow
from zq.model.errors import LimitReached, ServiceUnavailable, StorageFull, ZqError
from zq.model.job import NewJob
from zq.model.reach import EVERYWHERE
from zq.service.services import RunningService, Services
from zq.store.errors import StoreError
from zq.wire.bodies import Limits, decode_job
from zq.wire.codecs import JSON

log = logging.getLogger(__name__)

SOONEST_S = 0.01
"""The time between two looks while rows come. Each look that finds none doubles it."""

LATEST_S = 1.0
"""The longest time between two looks. A notification makes the next one come at once."""

LONGEST_REASON = 1_000

Taken = Sequence[tuple[int, NewJob]]
"""Rows that have become jobs, with their ids."""


class InboxTaker(RunningService):
    """Looks for rows, and has each stored as a job or refused.

    They pass the same checks as the body of `POST /jobs`. What cannot be stored at present, since a
    queue or the disk is full, waits where it is.
    """

    @classmethod
    def of(cls, services: Services) -> Self:
        return cls(services)

    def __init__(self, services: Services) -> None:
        settings = services.settings
        self._reads = services.store.reads.of(InboxReads)
        self._jobs, self._inbox = services.jobs, services.engine.inbox
        self._limits = Limits(settings.max_body, settings.max_payload, settings.max_bulk_items)
        self._state = services[InboxState]
        self._full: set[str] = set()
        """The queues that this look has found full."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._reads.is_there:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            await self._reads.stop_listening()

    async def _run(self) -> None:
        pause = SOONEST_S
        while True:
            found = False
            try:
                found = await self._take_all()
            except (ZqError, StoreError) as error:
                log.warning(f"rows of the inbox wait: {error}")
            except Exception as error:
                log.error("the inbox has failed and is tried again", exc_info=error)
            pause = SOONEST_S if found else min(2 * pause, LATEST_S)
            await self._reads.changed(pause)

    async def _take_all(self) -> bool:
        """Look at all rows that are there, once. Return True if some of them are gone now."""
        taken = after = 0
        self._full.clear()
        while rows := await self._reads.inbox_rows(after):
            after = rows[-1].id
            taken += await self._take(rows)
        if taken or self._state.refused.rows:
            self._state.refused = await self._reads.refused()
        return taken > 0

    async def _take(self, rows: Sequence[InboxRow]) -> int:
        """Store or refuse rows. Return how many."""
        good: list[tuple[int, NewJob]] = []
        refused = 0
        for row in rows:
            try:
                good.append((row.id, decode_job(row.document, JSON, self._limits)))
            except ZqError as error:
                await self._refuse(row.id, error)
                refused += 1
        return refused + await self._store(good)

    async def _store(self, taken: Taken) -> int:
        """Store jobs in their order. If one of them is refused, the others are stored all the same.

        A row that finds its queue full lets no later one of that queue pass, even if there is room
        by then.

        Raises `ServiceUnavailable` or `StorageFull`: all have to wait.
        """
        taken = [(row, job) for row, job in taken if job.queue not in self._full]
        if not taken:
            return 0
        rows = [row for row, _ in taken]
        jobs = [job for _, job in taken]
        try:
            await self._jobs.enqueue(jobs, EVERYWHERE, through=partial(TakeRows, rows=rows))
            return len(taken)
        except (ServiceUnavailable, StorageFull):
            raise
        except ZqError as error:
            if len(taken) == 1:
                if isinstance(error, LimitReached):
                    self._full.add(jobs[0].queue)
                    return 0
                if isinstance(error, RowsChanged):
                    return 0
                await self._refuse(rows[0], error)
                return 1
        half = len(taken) // 2
        return await self._store(taken[:half]) + await self._store(taken[half:])

    async def _refuse(self, row: int, error: ZqError) -> None:
        log.warning(f"row {row} of the inbox cannot become a job: {error}")
        await self._inbox.ask(RefuseRow(row, f"{error.code}: {error}"[:LONGEST_REASON]))


RUNNING = (InboxTaker,)
