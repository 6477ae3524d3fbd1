"""What operators do to one job and to workers."""

from typing import Protocol

from zq.client.values import StoredJob
from zq.model.patching import Patch
from zq.wire.workers import OpenWorker


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
