"""The reads of lanes."""

from collections.abc import Sequence

import msgspec

from zq.features.forward.model import ALL_KEYS, ForwardLane
from zq.features.forward.store import LaneReads, NewJobs, UnderWay
from zq.store.postgres.lookups import rows_of
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes

QUERIES = load("zq.features.forward.postgres_tick") | load(__name__)


class PostgresLaneReads(LaneReads):
    """The reads of lanes by the lanes of a store."""

    def __init__(self, readers: PostgresLanes) -> None:
        self._readers = readers

    async def lanes(self) -> list[ForwardLane]:
        return msgspec.convert(
            await self._readers.looks(rows_of, QUERIES["lanes"], {}), list[ForwardLane]
        )

    async def under_way(self) -> dict[int, UnderWay]:
        found = await self._readers.looks(rows_of, QUERIES["under_way"], {})
        return {lane: UnderWay(*each) for lane, *each in found}

    async def new_jobs(self, queues: Sequence[str], first: int) -> dict[str, NewJobs]:
        asked = {"queues": queues, "first": first}
        found = await self._readers.scans(rows_of, QUERIES["new_jobs"], asked)
        return {queue: NewJobs(jobs, oldest) for queue, jobs, oldest in found}

    async def waiting_bytes(self, queues: Sequence[str], span: range = ALL_KEYS) -> int:
        asked = {"queues": queues, "first": span.start, "end": span.stop}
        ((found,),) = await self._readers.scans(rows_of, QUERIES["waiting_bytes"], asked)
        return int(found)

    async def oldest_jobs(
        self, queues: Sequence[str], upto: int, limit: int
    ) -> list[tuple[int, int]]:
        asked = {"queues": queues, "upto": upto, "limit": limit}
        return await self._readers.scans(rows_of, QUERIES["oldest_jobs"], asked)


READS = {LaneReads: PostgresLaneReads}
