"""What operators do to one job and to workers."""

from typing import Protocol

import msgspec

from zq.client.values import StoredJob
from zq.model.patching import Patch


class OpenWorker(msgspec.Struct, frozen=True):
    """One open stream of a worker. Empty `queues` mean all. Times are in milliseconds."""

    id: str
    queues: list[str]
    prefetch: int
    concurrency: int
    busy: int
    """How many of its `concurrency` slots have a job."""
    held: list[str]
    """The ids of its jobs, the oldest delivery first."""
    since: int
    draining: bool
    address: str
    client: str
    unsent_bytes: int
    delivered: int
    failed: int
    """How many failures it has reported."""
    seen_at: int
    """The time at which it has settled or renewed something last, or was opened."""
    silent: bool
    """True if it has left out to renew the leases of its jobs."""


class Operations(Protocol):
    """The operations of one server. They raise what verbs of `zq.client.backend.Backend` raise."""

    async def delete(self, id: str) -> None:
        """Delete a job in any status. Raises `JobNotFound`."""

    async def change(self, id: str, patch: Patch) -> StoredJob:
        """Change a job that has not finished. Raises `JobNotFound`."""

    async def workers(self) -> list[OpenWorker]:
        """The open streams, the oldest first."""

    async def drop(self, worker: str) -> list[OpenWorker]:
        """Close the streams of a worker. Return what they were."""
