"""Statistics of queues as documents for clients."""

import msgspec
from msgspec import UNSET, UnsetType


class FlowDocument(msgspec.Struct, frozen=True, gc=False):
    """Jobs since the server started, and jobs a second over the last one and five minutes."""

    total: int
    per_second_1m: float
    per_second_5m: float


QUIET = FlowDocument(0, 0.0, 0.0)


class QueueStatsDocument(msgspec.Struct, gc=False):
    """One queue. `oldest_ready_age_ms` is missing if no job is ready.

    `workers` counts the open streams that take from it. `state` and `state_text` say what is wrong
    with it, as the operators' page does. They are missing if nothing is.
    """

    queue: str
    counts: dict[str, int]
    """Jobs in each status."""
    deliveries: FlowDocument = QUIET
    completions: FlowDocument = QUIET
    failures: FlowDocument = QUIET
    oldest_ready_age_ms: int | UnsetType = UNSET
    workers: int = 0
    state: str | UnsetType = UNSET
    state_text: str | UnsetType = UNSET
    paused: bool | UnsetType = UNSET


class StatsDocument(msgspec.Struct):
    """All queues that have jobs, or had traffic in the last five minutes, in byte order."""

    queues: list[QueueStatsDocument]
