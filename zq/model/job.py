"""A job and its options, as the store keeps them and every layer passes them on."""

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from zq.model.batch import BatchRule
from zq.model.budgets import BudgetPolicy, Draws
from zq.model.lifecycle import Status
from zq.model.unique import KeySpace, OnConflict, Scope, lock_of

DEFAULT_PRIORITY = 32768
MAX_PRIORITY = 65535
MAX_UINT32 = 2**32 - 1
MAX_UINT64 = 2**64 - 1
MAX_TIME = 2**63 - 1
"""The largest time in milliseconds that is stored: what SQLite's integers hold."""

MAX_META = 8 * 1024
"""Bytes of a job's `meta` as JSON text."""

INLINE_PAYLOAD = 512
"""Payloads and results of up to this many bytes lie in the job's row; larger ones beside it, so
that a change of status never rewrites them (measured: 1 KB 14.8 against 11.1 µs a job, 4 KB 38.7 to
22.5)."""


Priority = Annotated[int, Meta(ge=0, le=MAX_PRIORITY)]
UInt32 = Annotated[int, Meta(ge=0, le=MAX_UINT32)]
Millis = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": MAX_UINT64})]
"""As it is sent. Codecs refuse what is more than `MAX_UINT64`; a time above `MAX_TIME` is stored as
that, and so is whatever a duration leads to."""


class BackoffRule(msgspec.Struct, frozen=True):
    """How long a failed job waits: see `zq.model.settling.backoff_delay`. Milliseconds."""

    exponent: float
    base_ms: UInt32
    jitter_ms: UInt32


class Retention(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a finished job is kept, in milliseconds; None leaves it to the server's default."""

    completed_ms: Millis | None = None
    dead_ms: Millis | None = None


class JobSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job may set for itself and most jobs do not: one nullable JSON column."""

    retry_limit: int | None = None
    backoff: BackoffRule | None = None
    retention: Retention | None = None
    lease_ms: int | None = None
    budgets: Draws | None = None
    dead_letter: str | None = None
    """The queue that it moves to when it dies; there it is tried once."""
    dead_letter_after: int | None = None


NO_OPTIONS = JobSettings()


class Reason(StrEnum):
    """Why a job died."""

    EXHAUSTED = "exhausted"
    """It has failed more often than it may be tried again."""
    KILLED = "killed"
    """A failure said so."""
    STALLED = "stalled"
    """Its leases have run out too often."""


class Extras(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came with a job for its worker, and how the job came to where it is.

    One nullable JSON column. `meta` is JSON text of an object.
    """

    meta: str | None = None
    content_type: str | None = None
    traceparent: str | None = None
    origin: str | None = None
    """The queue in which it died, before it came to a dead-letter queue."""
    reason: str | None = None
    """Why it died: a `Reason`."""
    died_at: int | None = None
    """When it came to the dead-letter queue."""
    batch: BatchRule | None = None


class DedupeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name by which a second copy of a job is recognised within its queue and group.

    For `window_ms` (milliseconds) from when the first was accepted, whatever becomes of it.
    """

    id: str
    window_ms: Annotated[int, Meta(ge=1, le=MAX_UINT32)] = 300_000


CopyName = tuple[str, str, str]
"""By which copies are recognised: queue, group ('' where there is none), name."""

NO_EXTRAS = Extras()


def name_of(job: "NewJob") -> CopyName:
    """The name by which copies of a new job are recognised, where it brings one."""
    assert job.dedupe is not None
    return job.queue, job.group or "", job.dedupe.id


def batch_of(job: "NewJob | JobRecord") -> BatchRule | None:
    """The batch that a job came with, whether it is open or not."""
    return None if job.extras is None else job.extras.batch


class NewJob(msgspec.Struct, frozen=True, gc=False):
    """A validated job that waits to be stored. `payload` is JSON text, kept as it was received.

    `ready_at` of None means: from the moment of arrival on. `ttl_ms` is how long it may wait for a
    worker once it is ready, in milliseconds.
    """

    queue: str
    type: str
    payload: str
    payload_size: int
    priority: int = DEFAULT_PRIORITY
    ready_at: int | None = None
    options: JobSettings | None = None
    unique_key: str | None = None
    unique_while: Scope | None = None
    on_conflict: OnConflict = OnConflict.RETURN
    group: str | None = None
    dedupe: DedupeRule | None = None
    extras: Extras | None = None
    ttl_ms: int | None = None
    create_budgets: dict[str, BudgetPolicy] | None = None
    """The budgets to create first, where they do not exist."""
    unique_in: KeySpace = KeySpace.ALL

    @property
    def lock(self) -> str | None:
        """What its unique key is told from others by, where it has one."""
        if self.unique_key is None:
            return None
        return lock_of(self.queue, self.unique_key, self.unique_in)


class JobRecord(msgspec.Struct, array_like=True, gc=False):
    """A stored job, in the order of the store's columns. Times are milliseconds since the epoch.

    `deliveries` counts hand-outs and never falls, so it names one lease. `holder` is the stream
    that has the job while it is in flight, or 0 where its `claimant` has it. `attempts` counts all
    failures, of which `forgiven` ones came before the job was revived. `payload` is None where it
    lies beside the row, and so is `result`; a `result_size` of None says that there is no result.
    What most waiting jobs do not have comes last, so that the store can leave it out.
    """

    key: int
    queue: str
    type: str
    priority: int
    status: Status
    ready_at: int
    payload_size: int
    payload: str | None
    attempts: int = 0
    deliveries: int = 0
    holder: int | None = None
    dequeued_at: int | None = None
    failed_at: int | None = None
    finished_at: int | None = None
    purge_at: int | None = None
    options: JobSettings | None = None
    unique_key: str | None = None
    unique_while: Scope | None = None
    group: str | None = None
    expires_at: int | None = None
    lease_until: int | None = None
    claimant: str | None = None
    stalls: int = 0
    forgiven: int = 0
    extras: Extras | None = None
    result_size: int | None = None
    result: str | None = None
    unique_in: KeySpace = KeySpace.ALL

    @property
    def lock(self) -> str | None:
        """What its unique key is told from others by, where it has one."""
        if self.unique_key is None:
            return None
        return lock_of(self.queue, self.unique_key, self.unique_in)

    @property
    def weight(self) -> int:
        """Bytes of the payload and the result."""
        return self.payload_size + (self.result_size or 0)

    @property
    def result_beside(self) -> bool:
        """Whether there is a result that lies in its own row."""
        return self.result_size is not None and self.result_size > INLINE_PAYLOAD


class ErrorRecord(msgspec.Struct, array_like=True):
    """One failure of a job. `attempt` counts from 1."""

    attempt: int
    message: str
    error_type: str | None
    backtrace: str | None
    dequeued_at: int
    failed_at: int

    @property
    def weight(self) -> int:
        """About how many bytes its texts have."""
        return len(self.message) + len(self.error_type or "") + len(self.backtrace or "")


class Brief(msgspec.Struct, array_like=True, gc=False):
    """The few columns of a job that ending or returning it needs.

    The first three tell the usual job in flight.
    """

    key: int
    queue: str
    holder: int | None
    status: Status = Status.IN_FLIGHT
    attempts: int = 0
    options: JobSettings | None = None
    unique_while: Scope | None = None
    payload_size: int = 0
    result_size: int | None = None
    group: str | None = None
    unique_key: str | None = None
    batched: int = 0
    """Whether the job came with a batch."""


def is_open(host: JobRecord, now: int) -> bool:
    """Whether the host of a batch still takes jobs in, as far as its row tells."""
    lapsed = host.expires_at is not None and host.expires_at <= now
    return host.status is Status.READY and not lapsed


def brief_of(job: JobRecord) -> Brief:
    """What ending a job needs to know of it, as it is now."""
    return Brief(
        key=job.key,
        queue=job.queue,
        status=job.status,
        attempts=job.attempts,
        holder=job.holder,
        options=job.options,
        unique_while=job.unique_while,
        payload_size=job.payload_size,
        result_size=job.result_size,
        group=job.group,
        unique_key=job.unique_key,
        batched=batch_of(job) is not None,
    )
