"""The types of answers that handlers build by hand. Only the description uses them.

It leaves the word `Schema` out of their names.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

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


class LeaseUntil(msgspec.Struct):
    """The new deadline of a lease, in milliseconds."""

    lease_until: int


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


class EverySetting(msgspec.Struct):
    """The settings of queues, by queue."""

    queues: dict[str, QueueSettings]


class Count(msgspec.Struct):
    """How many jobs match, up to `searched_to` if a search broke off there."""

    count: int
    searched_to: str | UnsetType = UNSET


class QueuesSchema(msgspec.Struct):
    """Names in byte order."""

    queues: list[str]


class Error(msgspec.Struct):
    """The error, for people. The header `Zq-Error` has its code for programs."""

    error: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    supported: list[str] | UnsetType = UNSET
    not_found: list[str] | UnsetType = UNSET
    stale: list[str] | UnsetType = UNSET
    lease_until: int | UnsetType = UNSET
