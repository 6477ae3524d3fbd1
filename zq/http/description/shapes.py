"""Answers that handlers put together by hand, as types: for the description alone."""

import msgspec
from msgspec import UNSET, UnsetType

from zq.wire.documents import ErrorDocument, JobDocument


class Pages(msgspec.Struct):
    """Links to this page and its neighbours; null where there is no such page."""

    here: str = msgspec.field(name="self")
    next: str | None
    prev: str | None


class JobPage(msgspec.Struct):
    """A page of jobs."""

    jobs: list[JobDocument]
    pages: Pages


class ErrorPage(msgspec.Struct):
    """A page of a job's failures."""

    errors: list[ErrorDocument]
    pages: Pages


class EnqueuedJobs(msgspec.Struct):
    """Jobs in the order in which they were sent."""

    jobs: list[JobDocument]


class Count(msgspec.Struct):
    """How many jobs match."""

    count: int


class Patched(msgspec.Struct):
    """How many jobs were changed."""

    patched: int


class Deleted(msgspec.Struct):
    """How many jobs were deleted."""

    deleted: int


class Cancelled(msgspec.Struct):
    """How many jobs were cancelled."""

    cancelled: int


class Queues(msgspec.Struct):
    """Names in byte order."""

    queues: list[str]


class Refusal(msgspec.Struct):
    """Why new jobs are refused at present."""

    code: str
    error: str


class Health(msgspec.Struct):
    """`fsync` or `buffered`: what an acknowledgement, and an enqueue, waits for."""

    status: str
    commit_mode: str
    enqueue_commit_mode: str
    enqueues_refused: Refusal | UnsetType = UNSET


class Version(msgspec.Struct):
    """The level of the API, and zq's own version."""

    version: str
    zq: str


class Error(msgspec.Struct):
    """What was wrong, for people; the header `Zq-Error` has it for programs."""

    error: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    supported: list[str] | UnsetType = UNSET
    not_found: list[str] | UnsetType = UNSET
    stale: list[str] | UnsetType = UNSET
