"""Answers: jobs and error records as the documents that clients read."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.model import lifecycle, unique
from zq.model.ids import IdCodec
from zq.model.job import Backoff, ErrorRecord, Job, NewJob, Options, Retention
from zq.model.lifecycle import Status
from zq.model.outcome import Outcome


class JobDocument(msgspec.Struct, omit_defaults=True, gc=False):
    """A job as clients see it. Fields without a value are left out, not null."""

    id: str
    type: str
    queue: str
    priority: int
    status: str
    ready_at: int
    attempts: int
    payload: Raw | UnsetType = UNSET
    retry_limit: int | None = None
    backoff: Backoff | None = None
    retention: Retention | None = None
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


def taken_documents(jobs: Sequence[Job], ids: IdCodec) -> list[JobDocument]:
    """Jobs for the worker that takes them, each with its payload and the name of its delivery."""
    texts = ids.texts_to_return([job.key for job in jobs])
    documents = [
        _document(job, text, Raw(job.payload or "null"))
        for job, text in zip(jobs, texts, strict=True)
    ]
    for document, job in zip(documents, jobs, strict=True):
        document.lease = job.deliveries
    return documents


def job_document(job: Job, ids: IdCodec, *, with_payload: bool) -> JobDocument:
    """A stored job; `with_payload`, its payload and result need to be filled in."""
    shown = with_payload and job.payload is not None
    document = _document(job, ids.text(job.key), Raw(job.payload or "") if shown else UNSET)
    if with_payload:
        document.result = _raw(job.result)
    return document


def _raw(text: str | None) -> Raw | UnsetType:
    return UNSET if text is None else Raw(text)


def _document(job: Job, id: str, payload: Raw | UnsetType) -> JobDocument:
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
    # What follows most jobs have not.
    if job.options is not None:
        _add_options(document, job.options)
    if job.attempts or job.purge_at is not None:
        document.failed_at = job.failed_at
        document.purge_at = job.purge_at
        if job.status is Status.COMPLETED:
            document.completed_at = job.finished_at
        elif job.status is Status.CANCELLED:
            document.cancelled_at = job.finished_at
    if job.unique_key is not None:
        _add_key(document, job)
    return document


def _add_options(document: JobDocument, options: Options) -> None:
    document.retry_limit = options.retry_limit
    document.backoff = options.backoff
    document.retention = options.retention


def _add_key(document: JobDocument, job: Job | NewJob) -> None:
    document.unique_key = job.unique_key
    if job.unique_while is not None:
        document.unique_while = unique.NAMES[job.unique_while]


def enqueued_documents(
    jobs: Sequence[NewJob],
    keys: Sequence[int],
    now: int,
    owners: dict[int, Job],
    replaced: frozenset[int],
    ids: IdCodec,
) -> list[JobDocument]:
    """The answer to an enqueue: new jobs as they were stored, duplicates as their owners are."""
    documents = [
        _new_document(job, text, now) for job, text in zip(jobs, ids.texts(keys), strict=True)
    ]
    for index, owner in owners.items():
        documents[index] = document = job_document(owner, ids, with_payload=False)
        document.duplicate = True
        document.folded = False
        document.replaced = True if index in replaced else None
        document.result = _raw(owner.result)
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
    )
    if job.options is not None:
        _add_options(document, job.options)
    if job.unique_key is not None:
        _add_key(document, job)
    return document


class ErrorDocument(msgspec.Struct, omit_defaults=True):
    """One failure as clients see it."""

    attempt: int
    message: str
    dequeued_at: int
    failed_at: int
    error_type: str | None = None
    backtrace: str | None = None


def error_document(record: ErrorRecord) -> ErrorDocument:
    """One record of a job's error history."""
    return ErrorDocument(
        attempt=record.attempt,
        message=record.message,
        dequeued_at=record.dequeued_at,
        failed_at=record.failed_at,
        error_type=record.error_type,
        backtrace=record.backtrace,
    )


class OutcomeDocument(msgspec.Struct, omit_defaults=True):
    """How a job came out, or what it is doing. `job` answers those who have just stored it."""

    status: str
    result: Raw | UnsetType = UNSET
    error: ErrorDocument | str | None = None
    job: JobDocument | None = None


def outcome_document(outcome: Outcome, job: JobDocument | None) -> OutcomeDocument:
    """An outcome; a completed job without a result shows none, which differs from null."""
    error = None if outcome.error is None else error_document(outcome.error)
    return OutcomeDocument(lifecycle.NAMES[outcome.status], _raw(outcome.result), error, job)
