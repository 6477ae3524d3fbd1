"""Translates between the engine's values and the documents that the library uses."""

from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec import UNSET, Raw

from zq.client.errors import refusal
from zq.client.job_error import JobError
from zq.client.values import (
    JobOutcome,
    JobQuery,
    State,
    StoredJob,
)
from zq.model import errors
from zq.model.filters import Filter
from zq.model.ids import IdCodec
from zq.model.job import ErrorRecord, NewJob
from zq.model.leasing import stall_words
from zq.model.lifecycle import BY_NAME, NAMES, Status
from zq.model.settling import Ending
from zq.model.words import checked_words
from zq.service.jobs import Accepted
from zq.wire.documents import JobDocument, KnownDocument, enqueued_documents
from zq.wire.ids import key_of

_STATES = cast(dict[Status, State], NAMES)

_SHOWN = StoredJob.__struct_fields__

_OF_A_STATE = (errors.NotCancellable, errors.NotFinished, errors.NotDead)
_PASSING = (errors.ServiceUnavailable, errors.LimitReached, errors.StorageFull, errors.Internal)


def enqueued(new: Sequence[NewJob], stored: Accepted, ids: IdCodec) -> list[StoredJob]:
    """The answer to an enqueue."""
    documents = enqueued_documents(new, stored.keys, stored.now, stored.reply, ids)
    return [
        StoredJob(document.id, duplicate=True)
        if isinstance(document, KnownDocument)
        else stored_job(document)
        for document in documents
    ]


def stored_job(document: JobDocument) -> StoredJob:
    """A job as a server would show it. The library knows the defaults of fields left out."""
    shown = {name: getattr(document, name) for name in _SHOWN}
    for name in ("payload", "meta", "result"):
        if isinstance(text := shown[name], Raw):
            shown[name] = msgspec.json.decode(text)
        elif name == "meta":
            shown[name] = None
    for name in ("duplicate", "replaced", "folded"):
        shown[name] = bool(getattr(document, name))
    return StoredJob(**shown)


def job_outcome(ending: Ending, job: StoredJob | None = None) -> JobOutcome:
    """The outcome of a job."""
    error: JobError | str | None = None
    if ending.error is not None:
        error = error_of(ending.error)
    elif ending.reason is not None:
        error = stall_words(ending.stalls)
    return JobOutcome(
        _STATES[ending.status],
        UNSET if ending.result is None else msgspec.json.decode(ending.result),
        error,
        job,
    )


def error_of(record: ErrorRecord) -> JobError:
    """One failure of a job."""
    return JobError(
        record.attempt,
        record.message,
        record.error_type,
        record.backtrace,
        record.dequeued_at,
        record.failed_at,
        record.worker,
    )


def filter_of(query: JobQuery, ids: IdCodec) -> Filter:
    """A query as a filter of the engine."""
    keys = None
    if query.ids:
        keys = tuple(key for key in map(ids.key, query.ids) if key is not None)
    return Filter(
        statuses=tuple(sorted(BY_NAME[status] for status in query.statuses)),
        queues=query.queues,
        types=query.types,
        keys=keys,
        program=query.filter,
        budgets=query.budgets,
        errors=query.errors,
        groups=query.groups,
        priority=query.priority,
        attempts=query.attempts,
        ready_at=query.ready_at,
        finished_at=query.finished_at,
        upto=None if query.upto is None else key_of(query.upto, ids),
        words=checked_words(query.search),
    )


def refusal_of(error: errors.ZqError) -> errors.ZqError:
    """The library's error for an error of the engine. An error of the library stays as it is."""
    if type(error).__module__.startswith("zq.client."):
        return error
    state = error.status if isinstance(error, _OF_A_STATE) else ""
    status = 503 if isinstance(error, _PASSING) else None
    told = refusal(error.code, error.message, status, state)
    told.details, told.index = error.details, error.index
    return told
