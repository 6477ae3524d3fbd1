"""What goes to and comes from a backend: small values, named as the wire names them.

Times are milliseconds since the epoch and durations milliseconds, as everywhere below the public
interface. Payloads and results are plain data: what JSON holds, and what msgspec writes as such.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.model.ids import timestamp_ms
from zq.model.job import Backoff, Retention
from zq.model.settling import Failure

State = Literal["scheduled", "ready", "in_flight", "completed", "dead", "cancelled", "expired"]

Missing = UnsetType
MISSING = UNSET
"""Stands for a result that is not there, since None is a result like any other."""


class Dedupe(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A second job with this id, within the window and the same group, is the first one again."""

    id: str
    window_ms: int | None = None


class Submission(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job to store. What is None is left to the server."""

    queue: str
    type: str
    payload: Any
    priority: int | None = None
    ready_at: int | None = None
    retry_limit: int | None = None
    backoff: Backoff | None = None
    retention: Retention | None = None
    unique_key: str | None = None
    unique_while: str | None = None
    on_conflict: str | None = None
    group: str | None = None
    dedupe: Dedupe | None = None
    meta: Mapping[str, Any] | None = None
    content_type: str | None = None
    traceparent: str | None = None


class StoredJob(msgspec.Struct, gc=False):
    """A job as the server shows it. `payload` and `result` are MISSING where they are not shown.

    Of a duplicate whose first copy is gone there is no more than the `id`.
    """

    id: str
    type: str = ""
    queue: str = ""
    status: State | None = None
    priority: int = 0
    ready_at: int = 0
    attempts: int = 0
    payload: Any = UNSET
    retry_limit: int | None = None
    unique_key: str | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None
    completed_at: int | None = None
    cancelled_at: int | None = None
    purge_at: int | None = None
    lease_until: int | None = None
    origin: str | None = None
    reason: str | None = None
    group: str | None = None
    meta: Mapping[str, Any] | None = None
    result: Any = UNSET
    duplicate: bool = False
    replaced: bool = False

    @property
    def created_at(self) -> int:
        """When it was stored, which its id tells."""
        return timestamp_ms(self.id)


class Wish(msgspec.Struct, frozen=True):
    """What a worker asks of a take stream: at most `prefetch` unsettled jobs of these `queues`.

    It works on `concurrency` of them at a time, and calls itself `worker`. With `lease_ms` a
    delivery ends that long after it began, or was last extended; the stream ends with it.
    """

    queues: tuple[str, ...] = ()
    """None: all that it may."""
    prefetch: int = 1
    worker: str = ""
    lease_ms: int | None = None
    concurrency: int = 1


class Delivery(msgspec.Struct, gc=False):
    """A job that this worker holds. `lease` names the delivery; `attempts` counts failures."""

    id: str
    type: str
    queue: str
    payload: Any
    attempts: int = 0
    lease: int | None = None
    priority: int = 0
    retry_limit: int | None = None
    unique_key: str | None = None
    group: str | None = None
    content_type: str | None = None
    traceparent: str | None = None
    meta: Mapping[str, Any] | None = None


class Success(msgspec.Struct, omit_defaults=True, gc=False):
    """An acknowledgement with its result; None is a result, MISSING is none."""

    id: str
    lease: int | None = None
    result: Any = UNSET
    retention: Retention | None = None


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job that a worker holds, by the delivery's name."""

    id: str
    lease: int | None = None


class LeasedFailure(Failure, frozen=True, omit_defaults=True):
    """A failure report of the delivery `lease`; what it does not say is not sent."""


class Notice(msgspec.Struct, frozen=True):
    """What a stream is told beside jobs.

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
]
"""retrying: it has failed and is tried again. failed: for good. stalled: a lease was not kept."""


class JobEvent(msgspec.Struct, frozen=True):
    """What has happened to a job, as the server tells it, at `ts` milliseconds since the epoch.

    `data` is that of a report of progress. A `gap`, of no job, stands where events are missing:
    `missed` of them, where that is known. `event_id` is the place from which to go on.
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
    """Which events are meant: fields AND together, the values of one OR, none is any."""

    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    types: tuple[EventType, ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """Ids that were left alone: nobody holds them, or another delivery does."""

    not_found: list[str] = []
    stale: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.not_found or self.stale)


class JobError(msgspec.Struct, frozen=True):
    """One failure of a job. `attempt` counts from 1."""

    attempt: int
    message: str
    error_type: str | None = None
    backtrace: str | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None

    @property
    def details(self) -> Any:
        """What `to_dict()` of the exception has told, or None: see `DETAILS`."""
        line = (self.backtrace or "").rpartition("\n")[2]
        if not line.startswith(DETAILS):
            return None
        try:
            return msgspec.json.decode(line.removeprefix(DETAILS))
        except msgspec.DecodeError:  # somebody else's words
            return None


DETAILS = "zq details: "
"""With this begins the last line of a backtrace that tells what an exception says of itself, as
JSON. There it is stored and seen with the failure by whoever reads it, in any language."""


class JobOutcome(msgspec.Struct, frozen=True):
    """What a job is doing or how it came out; `job` where it has just been stored."""

    status: State
    result: Any = UNSET
    error: JobError | str | None = None
    job: StoredJob | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing will become of the job any more."""
        return self.status in ("completed", "dead", "cancelled", "expired")


class JobQuery(msgspec.Struct, frozen=True):
    """Which jobs are meant: fields AND together, the values of one OR. `filter` is jq."""

    statuses: tuple[State, ...] = ()
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    filter: str | None = None


EVERYTHING = JobQuery()


class Flow(msgspec.Struct, frozen=True):
    """Jobs since the server started, and a second over the last one and five minutes."""

    total: int
    per_second_1m: float
    per_second_5m: float


class QueueStats(msgspec.Struct, frozen=True):
    """What a queue holds: jobs by status, the longest wait of a ready one; and what goes through.

    `oldest_ready_age_ms` is None where no job is ready.
    """

    queue: str
    counts: dict[State, int]
    deliveries: Flow
    completions: Flow
    failures: Flow
    oldest_ready_age_ms: int | None = None


class JobPage(msgspec.Struct, frozen=True):
    """Jobs in the order of their ids. `after` is the cursor of the next page, None at the end."""

    jobs: list[StoredJob]
    after: str | None
