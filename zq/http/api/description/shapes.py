"""The types of answers that handlers build by hand. Only the description uses them.

It leaves the word `Schema` out of their names.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from zq.features.budgets.wire import BudgetDocument
from zq.model.settings import QueueSettings
from zq.wire.documents import ErrorDocument, JobDocument


class Pages(msgspec.Struct):
    """Links to this page and its neighbours; null if there is no such page."""

    here: str = msgspec.field(name="self")
    next: str | None
    prev: str | None


class JobPageSchema(msgspec.Struct):
    """A page of jobs."""

    jobs: list[JobDocument]
    pages: Pages
    searched_to: str | UnsetType = UNSET


class ErrorPage(msgspec.Struct):
    """A page of a job's failures."""

    errors: list[ErrorDocument]
    pages: Pages


class EnqueuedJobs(msgspec.Struct):
    """Jobs in the order of the request. For a copy of a deleted job, only the id is known."""

    jobs: list[Any]


class OutcomeSchema(msgspec.Struct):
    """The outcome of a job, or its present state. `job` is set if the request has stored it."""

    status: str
    result: Any = UNSET
    error: ErrorDocument | str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    job: dict[str, Any] | UnsetType = UNSET


class ClaimedJobs(msgspec.Struct):
    """Jobs, each with `lease` and `lease_until`."""

    jobs: list[JobDocument]


class CronNames(msgspec.Struct):
    """The names of the groups."""

    crons: list[str]


class LeaseUntil(msgspec.Struct):
    """The new deadline of a lease, in milliseconds."""

    lease_until: int


class WorkerDocument(msgspec.Struct):
    """One open stream. Empty `queues` mean all within its reach."""

    id: str
    queues: list[str]
    prefetch: int
    concurrency: int
    busy: int
    held: list[str]
    since: int
    seen_at: int
    silent: bool
    draining: bool
    address: str
    client: str
    unsent_bytes: int
    delivered: int
    failed: int


class WorkersDocument(msgspec.Struct):
    """Streams, the oldest first."""

    workers: list[WorkerDocument]


class KeyDocument(msgspec.Struct):
    """One access key. Empty `queues` mean all queues, and `budgets` of null the usual share."""

    name: str
    scopes: list[str]
    budgets: int | None
    queues: list[str]


class KeysDocument(msgspec.Struct):
    """The keys in the order of their file."""

    keys: list[KeyDocument]


class LeaseDocument(msgspec.Struct):
    """A lease with a deadline: its job, who has it, the number of the delivery, and the times."""

    id: str
    queue: str
    type: str
    worker: str
    lease: int
    dequeued_at: int
    lease_until: int


class OpenLeases(msgspec.Struct):
    """Leases, the earliest deadline first."""

    leases: list[LeaseDocument]


class BudgetsDocument(msgspec.Struct):
    """Budgets in the order of their keys."""

    budgets: list[BudgetDocument]


class Rebindings(msgspec.Struct):
    """How many jobs have changed draws, and which could not change because they are in flight."""

    changed: int
    blocked: list[str]


class EverySetting(msgspec.Struct):
    """The settings of queues, by queue."""

    queues: dict[str, QueueSettings]


class Requeued(msgspec.Struct):
    """How many dead jobs are ready again."""

    requeued: int


class Redriven(msgspec.Struct):
    """How many dead jobs are ready again, by the older name."""

    redriven: int


class Count(msgspec.Struct):
    """How many jobs match, up to `searched_to` if a search broke off there."""

    count: int
    searched_to: str | UnsetType = UNSET


class Patched(msgspec.Struct):
    """How many jobs were changed."""

    patched: int


class AddedJobs(msgspec.Struct):
    """How many jobs a queue got."""

    added: int


class Deleted(msgspec.Struct):
    """How many jobs were deleted."""

    deleted: int


class Cancelled(msgspec.Struct):
    """How many jobs were cancelled."""

    cancelled: int


class QueuesSchema(msgspec.Struct):
    """Names in byte order."""

    queues: list[str]


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
    """Another program's lock on the database: since when changes wait for it."""

    since: int
    error: str


class Health(msgspec.Struct):
    """`fsync` or `buffered`: what acknowledgements, and enqueues, wait for.

    `flushed_by` says how the log gets to the disk: through the kernel, as `linux-aio` or
    `io-uring`, or a `thread`.
    """

    status: str
    commit_mode: str
    enqueue_commit_mode: str
    flushed_by: str
    enqueues_refused: Refusal | UnsetType = UNSET
    quarantined: Quarantine | UnsetType = UNSET
    database_locked: LockInTheWay | UnsetType = UNSET
    faulty_crons: FaultyCrons | UnsetType = UNSET


class Version(msgspec.Struct):
    """The level of the API, and zq's own version."""

    version: str
    zq: str


class Error(msgspec.Struct):
    """The error, for people. The header `Zq-Error` has its code for programs."""

    error: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    supported: list[str] | UnsetType = UNSET
    not_found: list[str] | UnsetType = UNSET
    stale: list[str] | UnsetType = UNSET
    lease_until: int | UnsetType = UNSET
