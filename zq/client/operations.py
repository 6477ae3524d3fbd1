"""What operators do to one job, to workers and to schemas, and the marks in the charts."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from zq.client.values import StoredJob
from zq.features.failures.wire import CauseDocument, FailuresDocument
from zq.features.schemas.wire import AvroSchema, QueueSchemaDocument
from zq.features.trends.model import TimeMark
from zq.model.patching import Patch

FailureCause = CauseDocument
"""One cause of failures, as `GET /failures` shows it."""


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
    """When it has settled or renewed something last, or was opened."""
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

    async def failures(self, queues: Sequence[str], range: str, order: str) -> FailuresDocument:
        """The causes of failures in these queues, or in any. Raises `BackendError`.

        `range` and `order` are those of `GET /failures`.
        """

    async def mark(self, text: str) -> TimeMark:
        """Give this moment a name."""

    async def schema(self, queue: str) -> QueueSchemaDocument:
        """The schema of a queue. Raises `BackendError` if it has none."""

    async def set_schema(self, queue: str, schema: AvroSchema) -> QueueSchemaDocument:
        """Have the new jobs of a queue match a schema."""

    async def drop_schema(self, queue: str) -> None:
        """Take the schema of a queue away, if it has one."""
