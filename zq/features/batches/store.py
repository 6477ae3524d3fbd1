"""What may be read of batches, whichever the store is."""

from collections.abc import Sequence

from zq.model.job import JobRecord, is_open
from zq.store.snapshot import PAGE_BYTES, Snapshot, SnapshotLanes


class HostReads:
    """The reads of batches. They raise what the methods of `zq.store.reads.Reads` raise."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._lanes = lanes

    async def open_hosts(
        self, batch_keys: Sequence[str], now: int
    ) -> dict[str, tuple[int, JobRecord] | None]:
        """The revision of each batch and its open host with its payload; None if there is no host.

        The batches whose payloads exceed `PAGE_BYTES`, together with those before, are left out.
        """
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


READS = (HostReads,)
