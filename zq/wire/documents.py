"""Answers: jobs and error records as the documents that clients read."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.model import lifecycle, unique
from zq.model.ids import IdCodec
from zq.model.job import NO_OPTIONS, Backoff, ErrorRecord, Job, NewJob, Options, Retention
from zq.model.lifecycle import Status
from zq.model.outcome import Outcome
from zq.model.unique import Scope


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


def taken_document(job: Job, ids: IdCodec) -> JobDocument:
    """A job for the worker that takes it, with its payload and the name of its delivery."""
    document = _document(job, ids.text_to_return(job.key), Raw(job.payload or "null"))
    document.lease = job.deliveries
    return document


def job_document(job: Job, ids: IdCodec, *, with_payload: bool) -> JobDocument:
    """A stored job; `with_payload`, its payload and result need to be filled in."""
    shown = with_payload and job.payload is not None
    document = _document(job, ids.text(job.key), Raw(job.payload or "") if shown else UNSET)
    document.cancelled_at = job.cancelled_at
    if with_payload:
        document.result = _raw(job.result)
    return document


def _raw(text: str | None) -> Raw | UnsetType:
    return UNSET if text is None else Raw(text)


def _document(job: Job, id: str, payload: Raw | UnsetType) -> JobDocument:
    head = (id, job.type, job.queue, job.priority, lifecycle.NAMES[job.status])
    if job.attempts == 0 and job.options is None and job.unique_key is None:
        # Most jobs: nothing of theirs can have failed, and they set nothing unusual.
        times = (job.dequeued_at, None, job.completed_at, job.purge_at)
        return JobDocument(*head, job.ready_at, 0, payload, None, None, None, *times)
    options = job.options or NO_OPTIONS
    return JobDocument(
        *head,
        job.ready_at,
        job.attempts,
        payload,
        options.retry_limit,
        options.backoff,
        options.retention,
        job.dequeued_at,
        job.failed_at,
        job.completed_at,
        job.purge_at,
        job.unique_key,
        None if job.unique_while is None else unique.NAMES[job.unique_while],
    )


def enqueued_documents(
    jobs: Sequence[NewJob],
    keys: Sequence[int],
    now: int,
    owners: dict[int, Job],
    replaced: frozenset[int],
    ids: IdCodec,
) -> list[JobDocument]:
    """The answer to an enqueue: new jobs as they were stored, duplicates as their owners are."""
    documents: list[JobDocument] = []
    for index, (job, key) in enumerate(zip(jobs, keys, strict=True)):
        owner = owners.get(index)
        if owner is None:
            documents.append(_new_document(job, ids.text(key), now))
        else:
            document = job_document(owner, ids, with_payload=False)
            document.duplicate = True
            document.folded = False
            document.replaced = True if index in replaced else None
            document.result = _raw(owner.result)
            documents.append(document)
    return documents


def _new_document(job: NewJob, id: str, now: int) -> JobDocument:
    ready_at = now if job.ready_at is None else job.ready_at
    options: Options = job.options or NO_OPTIONS
    return JobDocument(
        id,
        job.type,
        job.queue,
        job.priority,
        lifecycle.NAMES[Status.READY if ready_at <= now else Status.SCHEDULED],
        ready_at,
        0,
        UNSET,
        options.retry_limit,
        options.backoff,
        options.retention,
        unique_key=job.unique_key,
        unique_while=_scope_name(job.unique_while),
        duplicate=False,
        folded=False,
    )


def _scope_name(scope: Scope | None) -> str | None:
    return None if scope is None else unique.NAMES[scope]


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
