"""The numbers of rows: what is sent again is sent under the numbers that it had the first time.

A relay gives numbers to the oldest rows and stores them before it sends a row. The relays of a
table are one producer, with an epoch that the table has. So the server recognises a row however
late it is sent again, and whichever relay sends it.

A new epoch takes the numbers away from the rows that are left. It begins where the server and the
table disagree: when a row among others is refused or was deleted by somebody, and when a database
or the server was restored from a backup. Two rules make that safe. Before the server leaves an
epoch, all rows that it has stored in it are deleted. And it leaves an epoch only at the last number
that the relay has seen, so that no request of the old epoch is stored later.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from zq.client.backend import Backend
from zq.client.errors import BackendError
from zq.client.values import Submission
from zq.features.producers.client import NumberedJobs
from zq.features.producers.model import EpochEnd
from zq.outbox.source import OutboxLane, OutboxRow, RefusedRow, Source, new_epoch, new_lane

log = logging.getLogger("zq.relay")


class NumberedRows(NamedTuple):
    """Rows that have numbers: that of the first one, and so on."""

    lane: OutboxLane
    first: int
    rows: Sequence[OutboxRow]


class RowNumbers:
    """Numbers the rows of one table, and keeps the table and the server of one mind."""

    def __init__(self, source: Source, backend: Backend) -> None:
        self._source = source
        self._backend = backend
        self._agreed = False

    def doubt(self) -> None:
        """Compare the table with the server before anything else is sent.

        So it is after a connection to the database was opened, for what is behind it may be another
        database than before.
        """
        self._agreed = False

    async def batch(self) -> NumberedRows | None:
        """The rows that have numbers or, if none is left, the oldest ones with new numbers."""
        while True:
            lane = await self._source.lane()
            numbered = () if lane is None else lane.ids
            rows = await self._source.rows_of(numbered) or await self._source.oldest()
            if not rows:
                return None
            ids = _ids(rows)
            if lane is None:
                await self._source.make(new_lane())
            elif not self._agreed:
                await self._agree(lane)
            elif ids == list(lane.ids[-len(ids) :]):
                return NumberedRows(lane, lane.next - len(ids), rows)
            elif not set(ids).isdisjoint(lane.ids):
                self.doubt()  # Somebody has taken rows out from among them.
            elif await self._source.move(lane, to := lane._replace(first=lane.next, ids=ids)):
                return NumberedRows(to, to.first, rows)

    async def ahead(self, batch: NumberedRows, left: Sequence[OutboxRow]) -> NumberedRows | None:
        """Number the oldest rows but for the last ones of a batch, which are under way."""
        under_way = _ids(left)
        known = set(under_way)
        rows = [row for row in await self._source.oldest() if row.id not in known]
        lane = batch.lane
        first = lane.next - len(under_way)
        to = lane._replace(first=first, ids=[*under_way, *_ids(rows)])
        if not rows or not await self._source.move(lane, to):
            return None
        return NumberedRows(to, lane.next, rows)

    async def store(self, lane: OutboxLane, number: int, jobs: Sequence[Submission]) -> None:
        """Store jobs, all or none. The first one has this number."""
        await NumberedJobs(self._backend, lane.producer, lane.epoch).store(number, jobs)

    async def refuse(self, lane: OutboxLane, number: int, refusal: RefusedRow) -> None:
        """Set aside the row of this number. Those after it lose theirs."""
        log.error("refused", extra={"fields": {"row": refusal.id, "error": refusal.error}})
        now = await self._source.lane()
        if now is not None and now.epoch == lane.epoch:
            await self._renew(now, EpochEnd(lane.epoch, number - 1), refusal)

    async def _agree(self, lane: OutboxLane) -> None:
        """Begin a new epoch unless the server goes on where the table does."""
        numbered = NumberedJobs(self._backend, lane.producer, lane.epoch)
        end = await numbered.end()
        if await self._source.lane() != lane:
            return  # Another relay goes on meanwhile, so this end is not of the lane as given.
        self._agreed = True
        if end.epoch == lane.epoch and lane.first - 1 <= end.last < lane.next:
            unsent = lane.ids[end.last + 1 - lane.first :]
            await self._delete_stored(lane, end)
            if _ids(await self._source.rows_of(unsent)) == list(unsent):
                return
        elif end.last:
            log.warning(
                "the server has other numbers than this table: one of them is older than it was,"
                " or another database is a copy of this one",
                extra={"fields": {"producer": lane.producer, "next": lane.next, "last": end.last}},
            )
        await self._renew(lane, end)

    async def _renew(
        self, lane: OutboxLane, end: EpochEnd, refusal: RefusedRow | None = None
    ) -> None:
        """Begin a new epoch where the server ends the old one."""
        await self._delete_stored(lane, end)
        to = OutboxLane(lane.producer, new_epoch())
        try:
            await NumberedJobs(self._backend, to.producer, to.epoch, end).store(1, ())
        except BackendError as error:
            if error.code != "producer_fenced":
                raise
            self.doubt()  # The server has stored more meanwhile.
        else:
            await self._source.move(lane, to, refusal)

    async def _delete_stored(self, lane: OutboxLane, end: EpochEnd) -> None:
        stored = max(0, end.last + 1 - lane.first) if end.epoch == lane.epoch else 0
        if stored:
            await self._source.delete(lane.ids[:stored])


def _ids(rows: Sequence[OutboxRow]) -> list[int]:
    return [row.id for row in rows]
