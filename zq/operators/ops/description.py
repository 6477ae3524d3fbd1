"""The parameters and answers of the routes for operators."""

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.forward.wire import LaneHealth
from zq.operators.ops.verbs import StatusDocument
from zq.verbs import Operation


class Refusal(msgspec.Struct):
    """Why new jobs are refused at present."""

    code: str
    error: str


class QuarantinedRow(msgspec.Struct):
    """A row of the database that cannot be read: its table, its key (a job's id), the reason, and
    when it was set aside."""

    table: str
    key: str
    reason: str
    at: int


class Quarantine(msgspec.Struct):
    """How many rows were set aside, and the latest of them."""

    rows: int
    latest: list[QuarantinedRow]


class FaultyCron(msgspec.Struct):
    """A cron entry whose schedule cannot be evaluated, and why."""

    group: str
    entry: str
    reason: str


class FaultyCrons(msgspec.Struct):
    """How many cron entries are set aside, and some of them."""

    entries: int
    named: list[FaultyCron]


class LockInTheWay(msgspec.Struct):
    """A lock of another program on the database, and since when changes wait for it (ms)."""

    since: int
    error: str


class StorageWritten(msgspec.Struct):
    """The bytes that went to the disk since the start, and what that is a year."""

    bytes: int
    bytes_a_year: int


class Health(msgspec.Struct):
    """`fsync` or `buffered`: what acknowledgements, and enqueues, wait for.

    `flushed_by` says how the log gets to the disk: through the kernel, as `linux-aio` or
    `io-uring`, or a `thread`. `may_lose_ms` is how much of the latest changes a power cut may take.
    """

    status: str
    commit_mode: str
    enqueue_commit_mode: str
    flushed_by: str
    may_lose_ms: int
    storage_written: StorageWritten | UnsetType = UNSET
    enqueues_refused: Refusal | UnsetType = UNSET
    quarantined: Quarantine | UnsetType = UNSET
    database_locked: LockInTheWay | UnsetType = UNSET
    database_away: LockInTheWay | UnsetType = UNSET
    faulty_crons: FaultyCrons | UnsetType = UNSET
    lanes: list[LaneHealth] | UnsetType = UNSET


class Version(msgspec.Struct):
    """The level of the API, and zq's own version."""

    version: str
    zq: str


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/health"): Operation({200: Health}),
    ("GET", "/healthz"): Operation({200: Health}),
    ("GET", "/status"): Operation({200: StatusDocument}),
    ("GET", "/version"): Operation({200: Version}),
    ("GET", "/metrics"): Operation({200: str}),
    ("POST", "/reset"): Operation({204: None}),
}
