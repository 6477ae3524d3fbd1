"""The reads of hosts."""

from collections.abc import Sequence

from zq.features.batches.store import HostReads
from zq.model.job import JobRecord, is_open
from zq.store.api import PAGE_BYTES
from zq.store.snapshot import Snapshot, SnapshotLanes


class StoredHostReads(HostReads):
    """The reads of hosts by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def open_hosts(
        self, batch_keys: Sequence[str], now: int
    ) -> dict[str, tuple[int, JobRecord] | None]:
        hosts = await self._lanes.looks(_open_hosts, batch_keys, self._lanes.steady_of(now))
        self._lanes.shown([found[1] for found in hosts.values() if found is not None])
        return hosts


def _open_hosts(
    snapshot: Snapshot, batch_keys: Sequence[str], now: int
) -> dict[str, tuple[int, JobRecord] | None]:
    """The open host of each batch with its payload, up to a page of bytes; None without a host."""
    found: dict[str, tuple[int, JobRecord] | None] = {}
    total = 0
    for key in batch_keys:
        jobs = snapshot.whole("get_host", key=key)
        found[key] = None
        if jobs and is_open(jobs[0], now):
            total += jobs[0].weight
            if total > PAGE_BYTES and len(found) > 1:
                del found[key]
                break
            found[key] = (snapshot.value("get_revision", key=key), jobs[0])
    return found


READS = {HostReads: StoredHostReads}
