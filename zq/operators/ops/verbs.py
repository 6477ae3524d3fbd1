"""The verbs about statistics of queues, and the state of a server as a document."""

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.keys import KeyScope
from zq.verbs import Verb


class RecentTimesDocument(msgspec.Struct):
    """The number of ticks or flushes of the last five minutes, and how long they took.

    Half of them took up to `p50_ms`, and 99 % up to `p99_ms`; 5000 also stands for more. Without
    any, neither is shown.
    """

    count: int
    p50_ms: float | UnsetType = UNSET
    p99_ms: float | UnsetType = UNSET


class InboxDocument(msgspec.Struct):
    """The new jobs that wait for a tick, their limit, and the waiting rows of other changes."""

    jobs: int
    jobs_limit: int
    changes: int


class WriteAheadLogDocument(msgspec.Struct):
    """The bytes of the log, its limit, and the bytes that the last checkpoint left in it."""

    bytes: int
    bytes_limit: int
    uncopied_bytes: int


class DiskDocument(msgspec.Struct):
    """The bytes of the database without the log, the free bytes where the store knows its disk, and
    those kept in reserve."""

    database_bytes: int
    reserve_bytes: int
    free_bytes: int | UnsetType = UNSET


class StatusDocument(msgspec.Struct):
    """The state of a server.

    `limits_reached` has codes, of errors and of reasons why jobs wait. `flags` has the settings
    that are not at their defaults.
    """

    version: str
    zq: str
    since: int
    commit_mode: str
    enqueue_commit_mode: str
    flushed_by: str
    ticks: RecentTimesDocument
    flushes: RecentTimesDocument
    inbox: InboxDocument
    streams: int
    claims: int
    log: WriteAheadLogDocument
    disk: DiskDocument
    limits_reached: list[str]
    flags: dict[str, str]
    in_flight_limit: int | UnsetType = UNSET


class FlowDocument(msgspec.Struct, frozen=True, gc=False):
    """Jobs since the server started, and jobs a second over the last one and five minutes."""

    total: int
    per_second_1m: float
    per_second_5m: float


QUIET = FlowDocument(0, 0.0, 0.0)


class QueueStatsDocument(msgspec.Struct, gc=False):
    """One queue. `oldest_ready_age_ms` is missing if no job is ready but those that wait behind
    others of their groups.

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


STATS = Verb("GET", "/stats", KeyScope.READ, StatsDocument)
STATS_OF_QUEUE = Verb("GET", "/queues/{queue}/stats", KeyScope.READ, QueueStatsDocument)
