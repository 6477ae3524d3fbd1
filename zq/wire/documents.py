"""Answers: jobs, error records and events as documents for clients."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.model import lifecycle, unique
from zq.model.commands import EnqueueResult
from zq.model.events import EventRecord, EventType
from zq.model.ids import IdCodec, minted_at, minted_times
from zq.model.job import (
    BroughtFields,
    ErrorRecord,
    Extras,
    JobFields,
    JobRecord,
    LastError,
    NewJob,
    SettingFields,
)
from zq.model.leasing import stall_words
from zq.model.lifecycle import Status
from zq.model.settling import Ending
from zq.model.sharing import copier, with_fields
from zq.model.unique import KeySpace
from zq.rooms import parts

MOST_TOLD = 200


class EventDocument(msgspec.Struct, omit_defaults=True, gc=False):
    """An event of a job, or a gap: a place where events are missing.

    `event_id` is left out of server-sent events, which have a field of their own for it. A gap has
    no job; `missed` is the number of missing events, if it is known.
    """

    type: str
    ts: int
    id: str | None = None
    queue: str | None = None
    key: str | None = None
    attempt: int | None = None
    data: Raw | UnsetType = UNSET
    missed: int | None = None
    event_id: str | None = None


class LastErrorDocument(msgspec.Struct, omit_defaults=True):
    """The latest failure of a job: the first 200 characters of its message, and its cause."""

    message: str
    error_type: str | None = None
    signature: str | None = None


# Most jobs have none of the optional fields: a document is made without them, and then gets them.
class JobDocument(JobFields, frozen=False, gc=False):  # type: ignore[misc]
    """A job as clients see it. Fields without a value are left out, not null."""

    id: str
    type: str
    queue: str
    priority: int
    status: str
    ready_at: int
    attempts: int
    payload: Raw | UnsetType = UNSET
    dequeued_at: int | None = None
    failed_at: int | None = None
    completed_at: int | None = None
    purge_at: int | None = None
    unique_key: str | None = None
    unique_while: str | None = None
    duplicate: bool | None = None
    folded: bool | None = None
    replaced: bool | None = None
    cancelled_at: int | None = None
    result: Raw | UnsetType = UNSET
    lease: int | None = None
    created_at: int | None = None
    meta: Raw | UnsetType = UNSET
    lease_until: int | None = None
    deliveries: int | None = None
    stalls: int | None = None
    expires_at: int | None = None
    expired_at: int | None = None
    origin: str | None = None
    reason: str | None = None
    group: str | None = None
    unique_in: str | None = None
    died_at: int | None = None
    last_error: LastErrorDocument | UnsetType = UNSET
    undo: str | None = None


if not TYPE_CHECKING:
    JobDocument = with_fields(JobDocument, *parts("wire_job", "DOCUMENT", type))


class KnownDocument(msgspec.Struct):
    """The document for the sender of a copy whose job is deleted or out of reach.

    The `id` is empty if nobody knows it any more.
    """

    id: str
    duplicate: bool = True
    folded: bool = False


EnqueuedDocument = JobDocument | KnownDocument

_SHOWN = {name: made for shown in parts("wire_job", "SHOWN", dict) for name, made in shown.items()}
"""Settings of jobs that rooms show, each with what makes its field of the document."""

_copy_settings = copier(SettingFields, _SHOWN)
_copy_brought = copier(BroughtFields)


def taken_documents(jobs: Sequence[JobRecord], ids: IdCodec) -> list[JobDocument]:
    """Jobs for the worker that takes them, with their payloads and the names of their deliveries.

    A job whose lease has a deadline has that too.
    """
    keys = [job.key for job in jobs]
    texts, times = ids.texts_to_return(keys), minted_times(keys)
    documents = [
        _document(job, text, Raw(job.payload or "null"))
        for job, text in zip(jobs, texts, strict=True)
    ]
    for document, job, created_at in zip(documents, jobs, times, strict=True):
        document.lease = job.deliveries
        document.created_at = created_at
        if job.lease_until is not None:
            document.lease_until = job.lease_until
            document.deliveries = job.deliveries
            document.stalls = job.stalls or None
    return documents


def job_document(job: JobRecord, ids: IdCodec, *, with_payload: bool) -> JobDocument:
    """A stored job. With `with_payload`, its payload and result must be filled in."""
    shown = with_payload and job.payload is not None
    document = _document(job, ids.text(job.key), Raw(job.payload or "") if shown else UNSET)
    if with_payload:
        document.result = _raw(job.result)
        document.created_at = minted_at(job.key)
    document.lease_until = job.lease_until
    # A job of a stream without a lease is shown as Zizq shows it.
    if job.lease_until is not None or job.status is Status.DEAD:
        document.stalls = job.stalls or None
    return document


def last_error_document(error: LastError | None) -> LastErrorDocument | UnsetType:
    """The latest failure of a job, if it has one."""
    if error is None:
        return UNSET
    return LastErrorDocument(error.message[:MOST_TOLD], error.error_type, error.signature)


def _raw(text: str | None) -> Raw | UnsetType:
    return UNSET if text is None else Raw(text)


def _document(job: JobRecord, id: str, payload: Raw | UnsetType) -> JobDocument:
    document = JobDocument(
        id,
        job.type,
        job.queue,
        job.priority,
        lifecycle.NAMES[job.status],
        job.ready_at,
        job.attempts,
        payload,
        dequeued_at=job.dequeued_at,
    )
    # Most jobs have none of the following.
    if job.options is not None:
        _copy_settings(job.options, document)
    if job.attempts or job.purge_at is not None:
        document.failed_at = job.failed_at
        document.purge_at = job.purge_at
        if job.status is Status.COMPLETED:
            document.completed_at = job.finished_at
        elif job.status is Status.CANCELLED:
            document.cancelled_at = job.finished_at
        elif job.status is Status.EXPIRED:
            document.expired_at = job.finished_at
        # Failures before a revival are only counted by the error records.
        document.attempts -= job.forgiven
    if job.unique_key is not None:
        _add_key(document, job)
    if job.expires_at is not None:
        document.expires_at = job.expires_at
    if job.extras is not None:
        _add_extras(document, job.extras)
    if job.group is not None:
        document.group = job.group
    return document


def _add_extras(document: JobDocument, extras: Extras) -> None:
    _copy_brought(extras, document)
    document.meta = _raw(extras.meta)
    document.origin, document.reason = extras.origin, extras.reason
    document.died_at = extras.died_at


def _add_key(document: JobDocument, job: JobRecord | NewJob) -> None:
    document.unique_key = job.unique_key
    if job.unique_while is not None:
        document.unique_while = unique.NAMES[job.unique_while]
    if job.unique_in is KeySpace.QUEUE:
        document.unique_in = "queue"


def enqueued_documents(
    jobs: Sequence[NewJob], keys: Sequence[int], now: int, reply: EnqueueResult, ids: IdCodec
) -> list[EnqueuedDocument]:
    """The answer to an enqueue: new jobs as they were stored, and owners in place of duplicates.

    A folded job is replaced by its host. A job of a queue with targets is the one of the first.
    """
    new = [_new_document(job, text, now) for job, text in zip(jobs, ids.texts(keys), strict=True)]
    known = reply.owners or reply.gone or reply.folded or reply.unnamed
    if not (known or reply.expiries or reply.queues):
        return [*new]
    for index, queue in reply.queues.items():
        new[index].queue = queue
    for index, expires_at in reply.expiries.items():
        new[index].expires_at = expires_at
    documents: list[EnqueuedDocument] = [*new]
    for index, owner in reply.owners.items():
        documents[index] = document = job_document(owner, ids, with_payload=False)
        document.duplicate = True
        document.folded = False
        document.replaced = True if index in reply.replaced else None
        document.result = _raw(owner.result)
    for index, host in reply.folded.items():
        documents[index] = document = job_document(host, ids, with_payload=False)
        document.duplicate = False
        document.folded = True
    for index, key in reply.gone.items():
        documents[index] = KnownDocument(ids.text(key))
    for index in reply.unnamed:
        documents[index] = KnownDocument("")
    return documents


def _new_document(job: NewJob, id: str, now: int) -> JobDocument:
    ready_at = now if job.ready_at is None else job.ready_at
    document = JobDocument(
        id,
        job.type,
        job.queue,
        job.priority,
        lifecycle.NAMES[Status.READY if ready_at <= now else Status.SCHEDULED],
        ready_at,
        0,
        duplicate=False,
        folded=False,
        group=job.group,
    )
    if job.options is not None:
        _copy_settings(job.options, document)
    if job.unique_key is not None:
        _add_key(document, job)
    if job.extras is not None:
        _add_extras(document, job.extras)
    return document


class ErrorDocument(msgspec.Struct, omit_defaults=True):
    """One failure as clients see it."""

    attempt: int
    message: str
    dequeued_at: int
    failed_at: int
    error_type: str | None = None
    backtrace: str | None = None
    signature: str | None = None
    worker: str | None = None


def error_document(record: ErrorRecord) -> ErrorDocument:
    """One record of a job's error history."""
    return ErrorDocument(
        attempt=record.attempt,
        message=record.message,
        dequeued_at=record.dequeued_at,
        failed_at=record.failed_at,
        error_type=record.error_type,
        backtrace=record.backtrace,
        signature=record.signature,
        worker=record.worker,
    )


def event_document(event: EventRecord, ts: int, event_id: str, ids: IdCodec) -> EventDocument:
    """An event that happened at `ts`, in milliseconds."""
    if event.type is EventType.CLOCK_SET:
        return EventDocument(event.type.value, ts, data=_raw(event.data), event_id=event_id)
    return EventDocument(
        event.type.value,
        ts,
        ids.text(event.key),
        event.queue,
        event.unique_key,
        event.attempt,
        _raw(event.data),
        event_id=event_id,
    )


class OutcomeDocument(msgspec.Struct, omit_defaults=True):
    """The outcome of a job, or its present state. `job` is set if the request has stored it."""

    status: str
    result: Raw | UnsetType = UNSET
    error: ErrorDocument | str | None = None
    job: EnqueuedDocument | None = None
    reason: str | None = None


def outcome_document(outcome: Ending, job: EnqueuedDocument | None) -> OutcomeDocument:
    """An outcome. A completed job without a result has none here, which differs from null."""
    error: ErrorDocument | str | None = None
    if outcome.error is not None:
        error = error_document(outcome.error)
    elif outcome.reason is not None:
        error = stall_words(outcome.stalls)
    name = lifecycle.NAMES[outcome.status]
    return OutcomeDocument(name, _raw(outcome.result), error, job, outcome.reason)


class NoticeDocument(msgspec.Struct, omit_defaults=True):
    """A notice in a stream, for streams that ask for notices.

    `control` is `cancel`, `lease_lost` or `drain`. The first two concern a delivery of a job.
    """

    control: str
    id: str | None = None
    lease: int | None = None


class OpenWorker(msgspec.Struct, frozen=True):
    """One open stream of a worker. Empty `queues` mean all. Times are in milliseconds."""

    id: str
    queues: list[str]
    prefetch: int
    concurrency: int
    busy: int
    """How many of its `concurrency` slots have a job."""
    held: list[str]
    """The ids of its jobs, the oldest delivery first."""
    since: int
    draining: bool
    address: str
    client: str
    unsent_bytes: int
    delivered: int
    failed: int
    """How many failures it has reported."""
    seen_at: int
    """The time at which it has settled or renewed something last, or was opened."""
    silent: bool
    """True if it has left out to renew the leases of its jobs."""


class WorkersDocument(msgspec.Struct):
    """Streams, the oldest first."""

    workers: list[OpenWorker]
