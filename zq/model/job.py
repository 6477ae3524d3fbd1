"""A job and its options, as the store keeps them and all layers pass them on."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from zq.model.lifecycle import Status
from zq.model.sharing import joined, maker, with_fields
from zq.model.unique import KeySpace, OnConflict, Scope, lock_of
from zq.rooms import parts

DEFAULT_PRIORITY = 32768
MAX_PRIORITY = 65535
MAX_UINT32 = 2**32 - 1
MAX_UINT64 = 2**64 - 1
MAX_TIME = 2**63 - 1
"""The largest time that is stored, in milliseconds. SQLite's integers end there."""

MAX_META = 8 * 1024
"""The largest `meta` of a job, in bytes of JSON text."""

INLINE_PAYLOAD = 512
"""Payloads and results of up to this many bytes are stored in the job's row. Larger ones are stored
apart, so that a change of status does not rewrite them (measured, µs a job: 14.8 against 11.1 for 1
KB, and 38.7 against 22.5 for 4 KB)."""


Priority = Annotated[int, Meta(ge=0, le=MAX_PRIORITY)]
UInt32 = Annotated[int, Meta(ge=0, le=MAX_UINT32)]
LeaseMillis = Annotated[int, Meta(ge=1, le=MAX_UINT32)]
Millis = Annotated[int, Meta(ge=0, extra_json_schema={"maximum": MAX_UINT64})]
"""A time or duration from a client. Codecs refuse values above `MAX_UINT64`. A time above
`MAX_TIME` is stored as `MAX_TIME`, also if a duration leads to it."""


class BackoffRule(msgspec.Struct, frozen=True):
    """How long a failed job waits: attempts^exponent seconds, and `base_ms`, and a random part of
    attempts · `jitter_ms`.
    """

    exponent: float
    base_ms: UInt32
    jitter_ms: UInt32


class Retention(msgspec.Struct, frozen=True, omit_defaults=True):
    """How long a finished job is kept, in milliseconds. None means the server's default."""

    completed_ms: Millis | None = None
    dead_ms: Millis | None = None


class SettingFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Fields of a job by which the server treats it. They have one form wherever they appear.

    A field of this class is one of bodies, of rows (`JobSettings`), of documents, of the entries of
    cron and of jobs in the library. `check_settings` of `zq.model.metadata` has the rules that its
    type does not say.
    """

    retry_limit: UInt32 | None = None
    backoff: BackoffRule | None = None
    retention: Retention | None = None
    lease_ms: LeaseMillis | None = None
    dead_letter: str | None = None
    """The queue that it moves to when it dies. It has a single attempt there."""
    dead_letter_after: UInt32 | None = None
    stall_limit: UInt32 | None = None
    """How often it may stall before it dies. It comes before the limit of its queue."""


class CarriedFields(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Fields that a job carries to its worker. They have one form wherever they appear.

    A field of this class is one of bodies, of rows (`Extras`), of documents, of the entries of
    cron, of jobs in the library and of deliveries. A replayed job has it too, and checksums cover
    it. `check_carried` of `zq.model.metadata` has the rules that its type does not say.
    """

    content_type: str | None = None
    traceparent: str | None = None


if not TYPE_CHECKING:
    # Rooms have such fields, too: `FIELDS` of their `job.py`.
    SettingFields = with_fields(SettingFields, *parts("job", "FIELDS", type))

if TYPE_CHECKING:

    class JobFields(SettingFields, CarriedFields, frozen=True, omit_defaults=True, kw_only=True):
        """The fields of a job that are declared once for all places."""

    class BroughtFields(CarriedFields, frozen=True, omit_defaults=True, kw_only=True):
        """What a job carries, and what rooms add to that."""

else:
    _OF_ROOMS = parts("job", "BROUGHT", type)
    JobFields = joined("JobFields", SettingFields, CarriedFields, *_OF_ROOMS)
    BroughtFields = joined("BroughtFields", CarriedFields, *_OF_ROOMS)


class SentFields(JobFields, frozen=True, omit_defaults=True, kw_only=True):
    """The fields that every sender of a job may give in one form: bodies, the library, entries of
    cron.

    How a job is stored by it is decided in `zq.wire.bodies` and `zq.tick.intake`.
    """

    unique_key: str | None = None
    unique_while: str | None = None
    unique_in: str | None = None
    on_conflict: str | None = None
    group: str | None = None
    ttl_ms: Annotated[int, Meta(ge=1, le=MAX_TIME)] | None = None


class JobSettings(SettingFields, frozen=True, omit_defaults=True):
    """Settings of a job that most jobs leave open. They are stored as one nullable JSON column.

    Rooms have settings of jobs, too: `SETTINGS` of their `job.py`.
    """


if not TYPE_CHECKING:
    JobSettings = with_fields(JobSettings, *parts("job", "SETTINGS", type))

NO_OPTIONS = JobSettings()


class Reason(StrEnum):
    """Why a job died."""

    EXHAUSTED = "exhausted"
    """The job has failed more often than its limit allows."""
    KILLED = "killed"
    """A failure report asked for it."""
    STALLED = "stalled"
    """The leases of the job have run out too often."""


class Extras(BroughtFields, frozen=True, omit_defaults=True):
    """The extra columns of a job: values for its worker, and its way to its queue.

    It is one nullable JSON column. `meta` is an object as JSON text.
    """

    meta: str | None = None
    origin: str | None = None
    """The queue in which it died before it was moved to a dead-letter queue."""
    reason: str | None = None
    """Why it died: a `Reason`."""
    died_at: int | None = None
    """When it was moved to the dead-letter queue."""
    twin_of: int | None = None
    """The key of the first of the jobs that were one job until it went to several targets."""
    ttl_ms: int | None = None
    """How long it may wait for a worker, each time that it comes back, if it came with a limit."""


class DedupeRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name by which copies of a job are recognised within its queue and group.

    It is recognised for `window_ms` (milliseconds) after the first job was accepted, whatever
    happens to that job.
    """

    id: str
    window_ms: Annotated[int, Meta(ge=1, le=MAX_UINT32)] = 300_000


CopyName = tuple[str, str, str]
"""The name of copies: queue, group ('' if there is none), name."""

NO_EXTRAS = Extras()


def name_of(job: "NewJob") -> CopyName:
    """The name by which copies of a new job are recognised. The job has one."""
    assert job.dedupe is not None
    return job.queue, job.group or "", job.dedupe.id


class NewJob(msgspec.Struct, frozen=True, gc=False):
    """A validated job that waits to be stored. `payload` is JSON text, kept as it was received.

    `ready_at` of None means the moment of arrival. `ttl_ms` is how long it may wait for a worker
    once it is ready, in milliseconds.
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
    makes: dict[str, Any] | None = None
    """The things that a room creates first if they do not exist, by names within the sender's
    reach."""
    unique_in: KeySpace = KeySpace.ALL

    @property
    def lock(self) -> str | None:
        """The stored form of its unique key, if it has one."""
        if self.unique_key is None:
            return None
        return lock_of(self.queue, self.unique_key, self.unique_in)

    @property
    def queues_named(self) -> tuple[str, ...]:
        """The queue of the job, and the dead-letter queue that it brings itself."""
        own = None if self.options is None else self.options.dead_letter
        return (self.queue,) if own is None else (self.queue, own)


class JobRecord(msgspec.Struct, array_like=True, gc=False):
    """A stored job, in the order of the store's columns. Times are milliseconds since the epoch.

    In the store and in ticks, `due_at`, `expires_at`, `purge_at` and `lease_until` are steady
    times, since they come from durations (see `zq.model.clock.SteadyClock`). All others are dates.
    What leaves the store has dates only: see `show_dates`.

    `deliveries` counts hand-outs and never falls, so it names one lease. `holder` is the stream
    that has the job while it is in flight, or 0 if its `claimant` has it. `attempts` counts all
    failures, of which `forgiven` ones came before the job was revived. `payload` and `result` are
    None if they are stored apart. `checksum` is that of the type, the payload and what the extras
    carry (see `zq.model.checksums`). A `result_size` of None says that there is no result. Fields
    that most waiting jobs lack come last, so that the store can leave them out.
    """

    key: int
    queue: str
    type: str
    priority: int
    status: Status
    ready_at: int
    payload_size: int
    payload: str | None
    checksum: int | None = None
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
    result_checksum: int | None = None
    unique_in: KeySpace = KeySpace.ALL
    due_at: int | None = None
    """When it becomes ready, if it is scheduled and waits for a duration, not for a date."""
    ttl_ms: int | None = None
    """How long it may wait for a worker from `ready_at` on, if it waits for that date."""
    line: int | None = None
    """The line in which it waits: see `zq.tick.lines`."""

    @property
    def lock(self) -> str | None:
        """The stored form of its unique key, if it has one."""
        if self.unique_key is None:
            return None
        return lock_of(self.queue, self.unique_key, self.unique_in)

    @property
    def weight(self) -> int:
        """The bytes of the payload and the result."""
        return self.payload_size + (self.result_size or 0)

    @property
    def result_beside(self) -> bool:
        """True if it has a result that is stored apart."""
        return self.result_size is not None and self.result_size > INLINE_PAYLOAD


class ErrorRecord(msgspec.Struct, array_like=True):
    """One failure of a job. `attempt` counts from 1."""

    attempt: int
    message: str
    error_type: str | None
    backtrace: str | None
    dequeued_at: int
    failed_at: int
    signature: str | None = None
    """Names its group: see `zq.features.failures.model`."""
    worker: str | None = None
    """Who had the job, if that has a name: the claimant, or the worker of the stream."""

    @property
    def weight(self) -> int:
        """The approximate bytes of its texts."""
        return len(self.message) + len(self.error_type or "") + len(self.backtrace or "")


class LastError(NamedTuple):
    """The latest failure of a job, in brief."""

    message: str
    error_type: str | None
    signature: str | None


class Brief(msgspec.Struct, array_like=True, gc=False):
    """The few columns of a job that are needed to end or return it.

    The first three are enough for a usual job in flight.
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
    """True if the job came with a batch."""
    dequeued_at: int | None = None
    line: int | None = None
    """The line in which it waits."""


def show_dates(jobs: Iterable[JobRecord], ahead: int) -> None:
    """Make the steady times of jobs dates, `ahead` of which steady time is. Name each job once."""
    for job in jobs:
        if job.due_at is not None and job.status is Status.SCHEDULED:
            job.ready_at = min(job.due_at - ahead, MAX_TIME)
        if job.ttl_ms is not None and job.expires_at is None:
            job.expires_at = min(job.ready_at + job.ttl_ms, MAX_TIME)
        elif ahead and job.expires_at is not None:
            job.expires_at -= ahead
        if ahead and job.purge_at is not None:
            job.purge_at -= ahead
        if ahead and job.lease_until is not None:
            job.lease_until -= ahead


def is_dead_letter(job: JobRecord) -> bool:
    """True if a job died in another queue. Its outcome is that of the life that ended there."""
    return job.extras is not None and job.extras.origin is not None


def without_former_key(job: JobRecord) -> JobRecord:
    """The job. A dead letter has no unique key: the one in its row is of the life that ended."""
    if job.unique_key is None or not is_dead_letter(job):
        return job
    return msgspec.structs.replace(job, unique_key=None, unique_while=None)


def is_over(job: JobRecord, now: int) -> bool:
    """True if a job has expired, or is no longer retained, at a steady time, although it is stored.

    A job that has been taken no longer expires.
    """
    ends = job.expires_at if job.status <= Status.READY else job.purge_at
    return ends is not None and ends <= now


def is_open(host: JobRecord, now: int) -> bool:
    """True if the host of a batch still accepts jobs at a steady time, judging by its row."""
    return host.status is Status.READY and not is_over(host, now)


_brief_of = maker(JobRecord, Brief, "batched")


def brief_of(job: JobRecord) -> Brief:
    """The present facts about a job that are needed to end it."""
    batch = None if job.extras is None else getattr(job.extras, "batch", None)
    return _brief_of(job, batched=batch is not None)
