"""Workers with open streams, as documents."""

import msgspec


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


class WorkersDocument(msgspec.Struct):
    """Streams, the oldest first."""

    workers: list[OpenWorker]
