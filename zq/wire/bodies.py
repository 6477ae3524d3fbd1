"""Request bodies: their fields, ranges and rules, from bytes to validated values of the model.

Zizq ignores unknown fields, so bodies that Zizq also has ignore them here. Bodies, and objects in
bodies, that only zq has refuse them.
"""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.model.errors import (
    InvalidRequest,
    PayloadTooLarge,
    TooLarge,
    TooManyItems,
    Unprocessable,
)
from zq.model.events import MAX_PROGRESS
from zq.model.job import (
    DEFAULT_PRIORITY,
    MAX_META,
    MAX_TIME,
    NO_EXTRAS,
    BackoffRule,
    BroughtFields,
    DedupeRule,
    Extras,
    JobSettings,
    LeaseMillis,
    Millis,
    NewJob,
    Priority,
    Retention,
    SentFields,
    SettingFields,
    UInt32,
)
from zq.model.metadata import check_carried, check_settings
from zq.model.names import check_dedupe, check_group, check_key, check_name
from zq.model.patching import Patch, RetentionPatch, StrictRetention
from zq.model.payload import MAX_DEPTH, nests_too_deeply, one_line
from zq.model.settling import Completion, Failure, bounded
from zq.model.sharing import is_bare, maker, part_of, with_fields
from zq.model.unique import BY_NAME, SPACES, KeySpace, OnConflict, Scope
from zq.rooms import parts
from zq.wire.codecs import BodyCodec, decode

T = TypeVar("T")

RETURN = OnConflict.RETURN


class Limits(NamedTuple):
    """The limits of one request: bytes of its body and of a payload; jobs or ids in bulk."""

    body: int
    payload: int
    items: int


class _Job(SentFields, frozen=True, gc=False):
    queue: str
    type: str
    payload: Raw
    priority: Priority | None = None
    ready_at: Millis | None = None
    meta: Raw | UnsetType = UNSET
    dedupe: DedupeRule | None = None


_OF_ROOMS = parts("wire_job", "BODY", type)
_TAKES: Sequence[Callable[[_Job, NewJob], NewJob]] = parts("wire_job", "take", FunctionType)
"""The rooms' functions that read their part of a new job's body."""

if not TYPE_CHECKING:
    _Job = with_fields(_Job, *_OF_ROOMS)

_settings_of = part_of(SettingFields, JobSettings)
_brought_by = part_of(BroughtFields, Extras)
_is_bare = is_bare(SentFields, *_OF_ROOMS)
_tells_no_room = is_bare(*_OF_ROOMS, *parts("job", "BROUGHT", type), *parts("job", "FIELDS", type))


MOST_USES = 64
"""A success tells of so many things that the job has used."""


class _Success(msgspec.Struct):
    result: Raw | UnsetType = UNSET
    retention: Retention | None = None
    lease: UInt32 | None = None
    used: dict[str, UInt32] | None = None


class _Item(_Success, kw_only=True, forbid_unknown_fields=True):
    id: str
    retention: StrictRetention | None = None


class _Successes(msgspec.Struct):
    ids: list[str] | UnsetType = UNSET
    items: list[_Item] | UnsetType = UNSET


class Cancellation(NamedTuple):
    """How one job is cancelled. `undo` keeps what it takes to bring the job back, if it is said."""

    force: bool = False
    undo: bool | None = None


class _Cancel(msgspec.Struct, forbid_unknown_fields=True):
    force: bool | None = None
    undo: bool | None = None


class _Progress(msgspec.Struct, forbid_unknown_fields=True):
    data: Raw
    lease: UInt32 | None = None


class _Patch(msgspec.Struct):
    queue: str | None | UnsetType = UNSET
    priority: Priority | None | UnsetType = UNSET
    ready_at: Millis | None | UnsetType = UNSET
    retry_limit: UInt32 | None | UnsetType = UNSET
    backoff: BackoffRule | None | UnsetType = UNSET
    retention: RetentionPatch | None | UnsetType = UNSET
    lease_ms: LeaseMillis | None | UnsetType = UNSET


_checked_patch = maker(_Patch, Patch, "queue", "priority", "ready_at")
_job = msgspec.json.Decoder(_Job)
_success = msgspec.json.Decoder(_Success)
_successes = msgspec.json.Decoder(_Successes)
_cancel = msgspec.json.Decoder(_Cancel)
_progress = msgspec.json.Decoder(_Progress)
_retention = msgspec.json.Decoder(StrictRetention)
_failure = msgspec.json.Decoder(Failure)
_patch = msgspec.json.Decoder(_Patch)


def decode_job(body: bytes, codec: BodyCodec, limits: Limits) -> NewJob:
    """The body of a single enqueue."""
    return new_job(decode(body, codec, _job), codec, limits.payload, set())


def new_job(job: _Job, codec: BodyCodec, max_payload: int, names: set[str]) -> NewJob:
    """Check a job, which may be part of another body.

    `names` are the valid names that the body had so far.
    """
    if job.type not in names:
        names.add(check_name("type", job.type))
    if job.queue not in names:
        names.add(check_name("queue", job.queue))
    priority = DEFAULT_PRIORITY if job.priority is None else job.priority
    ready_at = None if job.ready_at is None else min(job.ready_at, MAX_TIME)
    if job.meta is UNSET and job.dedupe is None and _is_bare(job):
        # Most jobs of other clients are so.
        payload, size = _payload(job, codec, max_payload)
        return NewJob(job.queue, job.type, payload, size, priority, ready_at)
    is_unique = job.unique_key is not None or job.unique_while is not None
    scope = _scope(job.unique_key, job.unique_while) if is_unique else None
    if job.unique_key is not None:
        check_key(job.unique_key)
    if job.group is not None:
        check_group(job.group)
    if job.dedupe is not None:
        check_dedupe(job.dedupe.id)
    options = _settings_of(job)
    if options is not None:
        check_settings(options)
    payload, size = _payload(job, codec, max_payload)
    new = NewJob(
        job.queue,
        job.type,
        payload,
        size,
        priority,
        ready_at,
        options,
        job.unique_key,
        scope,
        RETURN if job.on_conflict is None else _on_conflict(job.unique_key, job.on_conflict),
        job.group,
        job.dedupe,
        ttl_ms=job.ttl_ms,
        extras=_extras(job, codec),
        unique_in=KeySpace.ALL if job.unique_in is None else _space(job.unique_key, job.unique_in),
    )
    if _tells_no_room(job):
        return new
    for take in _TAKES:
        new = take(job, new)
    return new


def _payload(job: _Job, codec: BodyCodec, most: int) -> tuple[str, int]:
    payload, size = _text(job.payload, "payload", codec)
    if size > most:
        raise PayloadTooLarge(size, most)
    return payload, size


def decode_success(body: bytes, codec: BodyCodec) -> Completion:
    """The body of a single acknowledgement. It may be missing.

    A body that is not an object holds nothing for zq, and Zizq ignores it too.
    """
    if not codec.begins_object(body):
        return Completion()
    return _completion(decode(body, codec, _success), "", codec)


def decode_successes(
    body: bytes, codec: BodyCodec, limits: Limits
) -> tuple[list[str], dict[str, Completion]]:
    """The body of a bulk acknowledgement: its ids, and the completions of some of them.

    Each id comes once, in the order of first mention. An item whose id was named before is refused.
    """
    sent = decode(body, codec, _successes)
    if sent.ids is UNSET and sent.items is UNSET:
        raise InvalidRequest("ids is missing: send ids, or items, or both")
    ids = [] if sent.ids is UNSET else sent.ids
    items = [] if sent.items is UNSET else sent.items
    check_items(len(ids) + len(items), limits, "ids" if sent.items is UNSET else "items")
    if not ids and not items:
        raise InvalidRequest("ids must not be empty" if sent.items is UNSET else "nothing is named")
    named = dict.fromkeys(ids)
    said: dict[str, Completion] = {}
    for index, item in enumerate(items):
        if item.id in named or item.id in said:
            raise InvalidRequest(f"items[{index}].id: {item.id[:64]!r} is named twice")
        said[item.id] = _completion(item, f"items[{index}].", codec)
    return [*named, *said], said


def decode_progress(body: bytes, codec: BodyCodec) -> tuple[str, int | None]:
    """The body of a report of progress: JSON text, and the delivery that it names, if any."""
    sent = decode(body, codec, _progress)
    text, size = _text(sent.data, "data", codec)
    if size > MAX_PROGRESS:
        raise TooLarge(
            f"data has {size} bytes, but at most {MAX_PROGRESS} are allowed: store it elsewhere and"
            " send its address"
        )
    return text, sent.lease


def decode_force(body: bytes, codec: BodyCodec) -> bool:
    """The body of a cancellation: true if it is by force. It may be missing."""
    return decode_cancel(body, codec).force


def decode_cancel(body: bytes, codec: BodyCodec) -> Cancellation:
    """The body of the cancellation of one job. It may be missing."""
    if not body:
        return Cancellation()
    sent = decode(body, codec, _cancel)
    return Cancellation(bool(sent.force), sent.undo)


def decode_retention(body: bytes, codec: BodyCodec) -> Retention:
    """The body of a change of a finished job's retention."""
    return decode(body, codec, _retention).plain()


def decode_failure(body: bytes, codec: BodyCodec) -> Failure:
    """The body of a failure report. Long texts are shortened."""
    return bounded(decode(body, codec, _failure))


def decode_patch(body: bytes, codec: BodyCodec) -> Patch:
    """The body of a patch. An impossible queue is `Unprocessable`, as in Zizq."""
    patch = decode(body, codec, _patch)
    queue = _not_null("queue", patch.queue)
    if queue is not UNSET:
        try:
            check_name("queue", queue)
        except InvalidRequest as error:
            raise Unprocessable(error.message) from None
    ready_at = patch.ready_at
    return _checked_patch(
        patch,
        queue=queue,
        priority=_not_null("priority", patch.priority),
        ready_at=min(ready_at, MAX_TIME) if isinstance(ready_at, int) else ready_at,
    )


def check_items(count: int, limits: Limits, noun: str) -> None:
    """Raise `TooManyItems` if a request has too many items."""
    if count > limits.items:
        raise TooManyItems(
            f"{count} {noun} in one request, but at most {limits.items} are allowed: send several"
            " requests, or raise --max-bulk-items"
        )


def _extras(job: _Job, codec: BodyCodec) -> Extras | None:
    extras = _brought_by(job)
    if extras is not None:
        check_carried(extras)
    meta = None if job.meta is UNSET else _meta(job.meta, codec)
    return extras if meta is None else msgspec.structs.replace(extras or NO_EXTRAS, meta=meta)


def _meta(raw: Raw, codec: BodyCodec) -> str | None:
    if bytes(raw) == b"null":
        return None
    text, size = _text(raw, "meta", codec)
    if not text.startswith("{"):
        raise InvalidRequest(f"invalid {codec.name}: meta: expected object")
    if size > MAX_META:
        raise TooLarge(
            f"meta has {size} bytes, but at most {MAX_META} are allowed: put large data into the"
            " payload"
        )
    return text


def _completion(sent: _Success, place: str, codec: BodyCodec) -> Completion:
    if sent.used is not None and len(sent.used) > MOST_USES:
        raise InvalidRequest(f"{place}used has {len(sent.used)} names, and may have {MOST_USES}")
    result, size = None, 0
    if sent.result is not UNSET:
        result, size = _text(sent.result, f"{place}result", codec)
    return Completion(result, size, sent.retention, sent.lease, sent.used)


def _text(raw: Raw, field: str, codec: BodyCodec) -> tuple[str, int]:
    """A value of any kind as JSON text for the store, and its size in bytes."""
    text = str(raw, "utf-8")
    if "\n" in text or "\r" in text:  # asked here as well: few have them, and a call costs more
        text = one_line(text)
    if len(text) > MAX_DEPTH and nests_too_deeply(text):
        raise InvalidRequest(
            f"invalid {codec.name}: {field}: values may nest up to {MAX_DEPTH} deep"
        )
    return text, len(text) if text.isascii() else len(text.encode())


def _on_conflict(key: str | None, name: str) -> OnConflict:
    if key is None:
        raise InvalidRequest("on_conflict requires unique_key")
    if name not in tuple(OnConflict):
        expected = ", ".join(f'"{policy}"' for policy in OnConflict)
        raise InvalidRequest(f'invalid on_conflict: "{name}" (expected one of {expected})')
    return OnConflict(name)


def _scope(key: str | None, name: str | None) -> Scope | None:
    if name is None:
        return None if key is None else Scope.QUEUED
    if key is None:
        raise InvalidRequest("unique_while requires unique_key")
    if name not in BY_NAME:
        expected = '"queued", "active", or "exists"'
        raise InvalidRequest(f'invalid unique_while: "{name}" (expected {expected})')
    return BY_NAME[name]


def _space(key: str | None, name: str) -> KeySpace:
    if key is None:
        raise InvalidRequest("unique_in requires unique_key")
    if name not in SPACES:
        raise InvalidRequest(f'invalid unique_in: "{name}" (expected "all" or "queue")')
    return SPACES[name]


def _not_null(field: str, value: T | UnsetType | None) -> T | UnsetType:
    if value is None:
        raise Unprocessable(f"{field} cannot be null")
    return value


# The names of these shapes in the description of the API.
JobBody: TypeAlias = _Job
PatchBody = _Patch
SuccessBody, SuccessesBody, ProgressBody, CancelBody = _Success, _Successes, _Progress, _Cancel
