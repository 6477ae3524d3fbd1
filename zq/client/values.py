"""The arguments and results of a backend: small values, named as in the HTTP API.

Times are milliseconds since the epoch and durations are milliseconds, as everywhere below the
public interface. Payloads and results are plain data: everything that msgspec can write as JSON.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.client.job_error import JobError
from zq.features.batches.model import BatchRule
from zq.features.budgets.wire import DrawBody, DrawDocument
from zq.model.filters import ValueRange
from zq.model.ids import timestamp_ms
from zq.model.job import CarriedFields, JobFields, Retention, SentFields
from zq.model.settling import Failure

State = Literal["scheduled", "ready", "in_flight", "completed", "dead", "cancelled", "expired"]

Missing = UnsetType
MISSING = UNSET
"""Stands for an absent result, since None is a valid result."""


class Dedupe(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A second job with this id, within the window and the same group, counts as the first one."""

    id: str
    window_ms: int | None = None


class Submission(SentFields, frozen=True, gc=False):
    """A job to store, with all fields of `POST /jobs`. The server chooses those that are None."""

    queue: str
    type: str
    payload: Any
    priority: int | None = None
    ready_at: int | None = None
    dedupe: Dedupe | None = None
    meta: Mapping[str, Any] | None = None
    budgets: tuple[DrawBody, ...] | None = None
    if TYPE_CHECKING:
        # At run time these are fields of `SentFields`, by rooms.
        batch: BatchRule | None = None
        to: str | None = None
        fair_key: str | None = None
        fair_weight: float | None = None


class StoredJob(JobFields, frozen=True, gc=False, omit_defaults=False):
    """A job as the server shows it. `payload` and `result` are MISSING if they are not shown.

    For a copy of a deleted job, there is only the `id`.
    """

    id: str
    type: str = ""
    queue: str = ""
    status: State | None = None
    priority: int = 0
    ready_at: int = 0
    attempts: int = 0
    payload: Any = UNSET
    unique_key: str | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None
    completed_at: int | None = None
    cancelled_at: int | None = None
    purge_at: int | None = None
    lease_until: int | None = None
    origin: str | None = None
    reason: str | None = None
    stalls: int | None = None
    group: str | None = None
    budgets: list[DrawDocument] | None = None
    meta: Mapping[str, Any] | None = None
    result: Any = UNSET
    undo: str | None = None
    """The id of the sweep that takes back its cancellation, if that was asked for."""
    if TYPE_CHECKING:
        # At run time these are fields of `JobFields`.
        to: str | None = None
        fair_key: str | None = None
        fair_weight: float | None = None
    duplicate: bool = False
    folded: bool = False
    replaced: bool = False

    @property
    def created_at(self) -> int:
        """When the job was stored. Its id tells this."""
        return timestamp_ms(self.id)


class TakeRequest(msgspec.Struct, frozen=True):
    """A worker's request for a take stream: at most `prefetch` unsettled jobs of these `queues`.

    It works on `concurrency` of them at a time, under the name `worker`. With `lease_ms` a delivery
    ends this long after it began, or was last extended. The stream ends with it. A job of a queue
    that says nothing else may stall as often as `stall_limit`.
    """

    queues: tuple[str, ...] = ()
    """The queues to take from; empty means all that the caller may use."""
    prefetch: int = 1
    worker: str = ""
    lease_ms: int | None = None
    concurrency: int = 1
    stall_limit: int | None = None


class Delivery(CarriedFields, frozen=True, gc=False):
    """A job that this worker holds. `lease` names the delivery; `attempts` counts failures.

    `ready_at` is in milliseconds since the epoch.
    """

    id: str
    type: str
    queue: str
    payload: Any
    attempts: int = 0
    lease: int | None = None
    ready_at: int = 0
    priority: int = 0
    retry_limit: int | None = None
    unique_key: str | None = None
    group: str | None = None
    meta: Mapping[str, Any] | None = None


class Success(msgspec.Struct, omit_defaults=True, gc=False):
    """An acknowledgement with its result. None is a result; MISSING means that there is none."""

    id: str
    lease: int | None = None
    result: Any = UNSET
    retention: Retention | None = None
    used: dict[str, int] | None = None
    """Tokens of budgets that the job has used, instead of those that it drew."""


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that a worker holds, with the name of the delivery."""

    id: str
    lease: int | None = None


class LeasedFailure(Failure, frozen=True, omit_defaults=True):
    """A report of the failure of the delivery `lease`. Unset fields are not sent."""


class Notice(msgspec.Struct, frozen=True):
    """A message of a stream besides its jobs.

    `cancel`: the job was cancelled while it ran; `lease_lost`: its delivery has ended; `drain`: no
    more jobs come, finish what there is.
    """

    control: Literal["cancel", "lease_lost", "drain"]
    id: str = ""
    lease: int | None = None


EventType = Literal[
    "enqueued",
    "started",
    "progress",
    "retrying",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "stalled",
    "clock_set",
]
"""retrying: it has failed and is tried again. failed: for good. stalled: a lease was not kept.
clock_set: the server's clock was set by more than a minute; `data` says by how much."""


class JobEvent(msgspec.Struct, frozen=True):
    """An event of a job from the server, at `ts` milliseconds since the epoch.

    `data` is that of a report of progress. `clock_set` has no job, but `data` with `by_ms` and how
    many dates became due by it. A `gap` has no job either, and stands for missing events:
    `missed` of them, if that is known. A listener can continue at `event_id`.
    """

    type: EventType | Literal["gap"]
    ts: int
    id: str | None = None
    queue: str | None = None
    key: str | None = None
    attempt: int | None = None
    data: Any = UNSET
    missed: int | None = None
    event_id: str | None = None


class EventQuery(msgspec.Struct, frozen=True):
    """A filter of events: all fields must match, each by one of its values. An empty field matches
    any."""

    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    types: tuple[EventType, ...] = ()


class RefusedItems(msgspec.Struct, frozen=True):
    """Ids of jobs that were left unchanged: nobody holds them, or another delivery does."""

    not_found: list[str] = []
    stale: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.not_found or self.stale)


class JobOutcome(msgspec.Struct, frozen=True):
    """The state or outcome of a job. `job` is set if the request has just stored it."""

    status: State
    result: Any = UNSET
    error: JobError | str | None = None
    job: StoredJob | None = None

    @property
    def is_final(self) -> bool:
        """True if the state of the job is final."""
        return self.status in ("completed", "dead", "cancelled", "expired")


class JobQuery(msgspec.Struct, frozen=True):
    """A filter of jobs: all fields must match, each by one of its values. `filter` is in jq."""

    statuses: tuple[State, ...] = ()
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    filter: str | None = None
    budgets: tuple[str, ...] = ()
    """Keys of budgets. A job must draw from at least one of them."""
    errors: tuple[str, ...] = ()
    """Signatures of groups of failures. The latest failure of a job is of one of them."""
    upto: str | None = None
    """Only jobs up to this id: none that arrived after it."""
    groups: tuple[str, ...] = ()
    priority: ValueRange | None = None
    attempts: ValueRange | None = None
    ready_at: ValueRange | None = None
    finished_at: ValueRange | None = None
    """The times at which jobs were completed, died, were cancelled or expired."""
    search: str | None = None
    """Words that all occur in the type, the message of the latest failure or the payload."""


EVERYTHING = JobQuery()


class Flow(msgspec.Struct, frozen=True):
    """Counts of jobs: since the server started, and per second over one second and five minutes."""

    total: int
    per_second_1m: float
    per_second_5m: float


class QueueStats(msgspec.Struct, frozen=True):
    """The jobs of a queue by status, the longest wait of a ready one, and the queue's traffic.

    `oldest_ready_age_ms` is None if no job is ready but those behind others of their groups.
    `state` is empty, or says what is wrong: `no_worker`, `failing`, `growing`, `stuck`, `budget`,
    `old` or `paused`; `state_text` says more.
    """

    queue: str
    counts: dict[State, int]
    deliveries: Flow
    completions: Flow
    failures: Flow
    oldest_ready_age_ms: int | None = None
    workers: int = 0
    """How many streams of workers take from it."""
    state: str = ""
    state_text: str = ""
    paused: bool = False


class JobListing(msgspec.Struct, frozen=True):
    """Jobs by their ids, upwards or downwards. `after` is the cursor of the next page; None at the
    end."""

    jobs: list[StoredJob]
    after: str | None
