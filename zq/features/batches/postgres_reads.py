"""The reads of hosts."""

from collections.abc import Sequence

from zq.features.batches.store import HostReads
from zq.model.job import JobRecord, is_open
from zq.store.api import PAGE_BYTES
from zq.store.postgres.connection import Connection
from zq.store.postgres.lookups import rows_of, whole_jobs
from zq.store.postgres.queries import load
from zq.store.postgres.readers import PostgresLanes
from zq.store.postgres.rows import jobs_of

QUERIES = load("zq.features.batches.postgres_tick")


class PostgresHostReads(HostReads):
    """The reads of hosts by the lanes of a store."""

    def __init__(self, lanes: PostgresLanes) -> None:
        self._lanes = lanes

    async def open_hosts(
        self, batch_keys: Sequence[str], now: int
    ) -> dict[str, tuple[int, JobRecord] | None]:
        hosts = await self._lanes.looks(_open_hosts, batch_keys, self._lanes.steady_of(now))
        self._lanes.shown([found[1] for found in hosts.values() if found is not None])
        return hosts


def _open_hosts(
    connection: Connection, batch_keys: Sequence[str], now: int
) -> dict[str, tuple[int, JobRecord] | None]:
    """The open host of each batch with its payload, up to a page of bytes; None without a host."""
    found: dict[str, tuple[int, JobRecord] | None] = {}
    total = 0
    for key in batch_keys:
        named = {"names": [key]}
        jobs = whole_jobs(
            connection, jobs_of(rows_of(connection, QUERIES["read_host_jobs"], named))
        )
        found[key] = None
        if jobs and is_open(jobs[0], now):
            total += jobs[0].weight
            if total > PAGE_BYTES and len(found) > 1:
                del found[key]
                break
            ((_, revision),) = rows_of(connection, QUERIES["read_hosts"], named)
            found[key] = (revision, jobs[0])
    return found


READS = {HostReads: PostgresHostReads}
