"""Request bodies: their fields, ranges and rules, from bytes to validated values of the model."""

from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.model.errors import (
    InvalidRequest,
    NotBuilt,
    PayloadTooLarge,
    TooManyItems,
    Unprocessable,
    ZqError,
)
from zq.model.job import (
    DEFAULT_PRIORITY,
    NO_OPTIONS,
    Backoff,
    Millis,
    NewJob,
    Options,
    Priority,
    Retention,
    UInt32,
)
from zq.model.names import check_name
from zq.model.patching import Patch, RetentionPatch
from zq.model.settling import Failure
from zq.model.unique import BY_NAME, Scope
from zq.wire.codecs import MAX_DEPTH, Codec, decode, nests_too_deeply

T = TypeVar("T")


class Limits(NamedTuple):
    """How much one request may bring: bytes of its body, of a payload; jobs or ids in bulk."""

    body: int
    payload: int
    items: int


class _Job(msgspec.Struct, gc=False):
    queue: str
    type: str
    payload: Raw
    priority: Priority | None = None
    ready_at: Millis | None = None
    retry_limit: UInt32 | None = None
    backoff: Backoff | None = None
    retention: Retention | None = None
    unique_key: str | None = None
    unique_while: str | None = None
    batch: Any = None
    budgets: Any = None


class _Bulk(msgspec.Struct):
    jobs: list[_Job]


class _Ids(msgspec.Struct):
    ids: list[str]


class _Patch(msgspec.Struct):
    queue: str | None | UnsetType = UNSET
    priority: Priority | None | UnsetType = UNSET
    ready_at: Millis | None | UnsetType = UNSET
    retry_limit: UInt32 | None | UnsetType = UNSET
    backoff: Backoff | None | UnsetType = UNSET
    retention: RetentionPatch | None | UnsetType = UNSET


_job = msgspec.json.Decoder(_Job)
_bulk = msgspec.json.Decoder(_Bulk)
_ids = msgspec.json.Decoder(_Ids)
_failure = msgspec.json.Decoder(Failure)
_patch = msgspec.json.Decoder(_Patch)


def decode_job(body: bytes, codec: Codec, limits: Limits) -> NewJob:
    """The body of a single enqueue."""
    return _new_job(decode(body, codec, _job), codec, limits.payload)


def decode_jobs(body: bytes, codec: Codec, limits: Limits) -> list[NewJob]:
    """The body of a bulk enqueue: all jobs are valid, or an error names the first that is not."""
    items = decode(body, codec, _bulk).jobs
    _check_items(len(items), limits, "jobs")
    jobs: list[NewJob] = []
    for index, job in enumerate(items):
        try:
            jobs.append(_new_job(job, codec, limits.payload))
        except ZqError as error:
            raise type(error)(f"jobs[{index}]: {error.message}") from None
    return jobs


def decode_ids(body: bytes, codec: Codec, limits: Limits) -> list[str]:
    """The body of a bulk acknowledgement, each id once, in the order of first mention."""
    ids = decode(body, codec, _ids).ids
    _check_items(len(ids), limits, "ids")
    if not ids:
        raise InvalidRequest("ids must not be empty")
    return list(dict.fromkeys(ids))


def decode_failure(body: bytes, codec: Codec) -> Failure:
    """The body of a failure report."""
    return decode(body, codec, _failure)


def decode_patch(body: bytes, codec: Codec) -> Patch:
    """The body of a patch. A queue that cannot be is `Unprocessable`, as Zizq has it."""
    patch = decode(body, codec, _patch)
    queue = _not_null("queue", patch.queue)
    if queue is not UNSET:
        try:
            check_name("queue", queue)
        except InvalidRequest as error:
            raise Unprocessable(error.message) from None
    return Patch(
        queue=queue,
        priority=_not_null("priority", patch.priority),
        ready_at=patch.ready_at,
        retry_limit=patch.retry_limit,
        backoff=patch.backoff,
        retention=patch.retention,
    )


def _check_items(count: int, limits: Limits, noun: str) -> None:
    if count > limits.items:
        raise TooManyItems(
            f"{count} {noun} in one request, at most {limits.items} are taken: send several"
            " requests, or raise --max-bulk-items"
        )


def _new_job(job: _Job, codec: Codec, max_payload: int) -> NewJob:
    check_name("type", job.type)
    check_name("queue", job.queue)
    scope = _scope(job.unique_key, job.unique_while)
    if job.batch is not None or job.budgets:
        _refuse_unbuilt(job)
    payload = str(job.payload, "utf-8")
    if "\n" in payload or "\r" in payload:
        # A stream carries a job a line; outside of strings line breaks mean nothing.
        payload = msgspec.json.format(payload, indent=-1)
    size = len(payload) if payload.isascii() else len(payload.encode())
    if size > max_payload:
        raise PayloadTooLarge(
            f"the payload has {size} bytes, at most {max_payload} are taken: keep large data"
            " elsewhere and send its address, or raise --max-payload"
        )
    if nests_too_deeply(payload):
        raise InvalidRequest(
            f"invalid {codec.name}: payload: values may nest up to {MAX_DEPTH} deep"
        )
    return NewJob(
        job.queue,
        job.type,
        payload,
        size,
        DEFAULT_PRIORITY if job.priority is None else job.priority,
        job.ready_at,
        _options(job),
        job.unique_key,
        scope,
    )


def _scope(key: str | None, name: str | None) -> Scope | None:
    if name is None:
        return None if key is None else Scope.QUEUED
    if key is None:
        raise InvalidRequest("unique_while requires unique_key")
    if name not in BY_NAME:
        expected = '"queued", "active", or "exists"'
        raise InvalidRequest(f'invalid unique_while: "{name}" (expected {expected})')
    return BY_NAME[name]


def _refuse_unbuilt(job: _Job) -> None:
    if job.batch is not None:
        if job.unique_key is not None:
            raise InvalidRequest("unique_key and batch cannot be combined")
        raise NotBuilt("batch is not supported by this version of zq: leave it out")
    raise NotBuilt("budgets are not supported by this version of zq: leave them out")


def _options(job: _Job) -> Options | None:
    if job.retry_limit is None and job.backoff is None and job.retention is None:
        return None
    retention = None if job.retention == Retention() else job.retention
    options = Options(job.retry_limit, job.backoff, retention)
    return None if options == NO_OPTIONS else options


def _not_null(field: str, value: T | UnsetType | None) -> T | UnsetType:
    if value is None:
        raise Unprocessable(f"{field} cannot be null")
    return value
