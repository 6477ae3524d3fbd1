"""What may be read of batches, whichever the store is."""

from collections.abc import Sequence
from typing import Protocol

from zq.model.job import JobRecord


class HostReads(Protocol):
    """It raises what the methods of `zq.store.api.Reads` raise."""

    async def open_hosts(
        self, batch_keys: Sequence[str], now: int
    ) -> dict[str, tuple[int, JobRecord] | None]:
        """The revision of each batch and its open host with its payload; None if there is no host.

        The batches whose payloads exceed `PAGE_BYTES`, together with those before, are left out.
        """
