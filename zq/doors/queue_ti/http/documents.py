"""Answers of queue-ti: messages with their ids, statistics, overrides, pages of lists, and errors.

An id is a UUID of version 7, made from an id of the native API and made into one again. The time
and the key's low bits are all there; of what is drawn for the database the last bits are left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from zq.features.archive.model import NotArchived
from zq.features.targets.model import TargetExists, TargetNotFound
from zq.http.api.problems import CODE_HEADER, completed
from zq.http.api.problems import STATUSES as NATIVE
from zq.http.door import Ids, Statuses, Words, status_in
from zq.http.transport.answer import Answer
from zq.model import errors
from zq.model.clock import LAST_DATE_MS
from zq.model.errors import ZqError
from zq.model.ids import ALPHABET, EPOCH_MS, LOW_BITS, IdCodec, minted_at
from zq.model.job import MAX_TIME, NO_EXTRAS, NO_OPTIONS, JobRecord
from zq.model.lifecycle import Status
from zq.model.settings import QueueSettings

STATUSES = {
    "pending": (Status.SCHEDULED, Status.READY),
    "processing": (Status.IN_FLIGHT,),
    "failed": (Status.DEAD,),
    "expired": (Status.EXPIRED,),
}
"""The states of a job that each status at queue-ti's door stands for. A completed or cancelled job
is gone here."""

NAMES = {status: name for name, statuses in STATUSES.items() for status in statuses}
SHOWN = tuple(NAMES)

DLQ = ".dlq"

FOREVER_MS = MAX_TIME
"""How long messages are archived in a topic without a window."""


class MessageDocument(msgspec.Struct):
    """A message; what is UNSET is left out."""

    id: str
    topic: str
    payload: str
    metadata: dict[str, str] | None
    status: str
    retry_count: int
    max_retries: int
    created_at: str
    key: str | UnsetType = UNSET
    last_error: str | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    original_topic: str | UnsetType = UNSET
    dlq_moved_at: str | UnsetType = UNSET


class OverridesDocument(msgspec.Struct):
    """The overrides of a topic."""

    topic: str
    replayable: bool = False
    max_retries: int | UnsetType = UNSET
    message_ttl_seconds: int | UnsetType = UNSET
    max_depth: int | UnsetType = UNSET
    throughput_limit: int | UnsetType = UNSET
    replay_window_seconds: int | UnsetType = UNSET


def message(job: JobRecord, ids: Ids, limit: int, last_error: str, topic: str) -> MessageDocument:
    """A job as a message of a topic; `limit` is the retry limit of one that has none of its own."""
    options, extras = job.options or NO_OPTIONS, job.extras or NO_EXTRAS
    own = limit if options.retry_limit is None else options.retry_limit
    return MessageDocument(
        id=ids.text(job.key),
        topic=topic,
        payload=payload_of(job),
        metadata=metadata_of(job),
        status=NAMES[job.status],
        retry_count=job.attempts - job.forgiven,
        # Where it came to as a dead letter it is not tried again.
        max_retries=0 if options.dead_letter == job.queue else own + 1,
        created_at=created_at(job),
        key=UNSET if job.unique_key is None else job.unique_key,
        last_error=last_error or UNSET,
        expires_at=UNSET if job.expires_at is None else rfc3339(job.expires_at),
        original_topic=extras.origin or UNSET,
        dlq_moved_at=UNSET if extras.died_at is None else rfc3339(extras.died_at),
    )


def payload_of(job: JobRecord) -> str:
    """The payload of a message: a text as it is, and what natively is something else as its JSON.

    No values are made of that JSON, however many it has.
    """
    stored = job.payload or "null"
    return msgspec.json.decode(stored, type=str) if stored.startswith('"') else stored


def metadata_of(job: JobRecord) -> dict[str, str] | None:
    meta = None if job.extras is None else job.extras.meta
    if meta is None:
        return None
    return {name: as_text(value) for name, value in msgspec.json.decode(meta).items()}


def created_at(job: JobRecord) -> str:
    """When a message was stored."""
    return rfc3339(minted_at(job.key))


def statistics(counts: Mapping[tuple[str, Status], int]) -> list[dict[str, Any]]:
    """How many messages each topic has in each status, where it has some."""
    totals: Counter[tuple[str, str]] = Counter()
    for (queue, status), n in counts.items():
        if status in NAMES and n:
            totals[queue, NAMES[status]] += n
    return [{"topic": t, "status": s, "count": n} for (t, s), n in sorted(totals.items())]


def overrides(topic: str, settings: QueueSettings) -> OverridesDocument | None:
    """The overrides of a topic, from its queue's settings; None where nothing is set."""
    document = OverridesDocument(topic)
    if settings.retry_limit is not None:
        is_none = settings.retry_limit == settings.dead_letter_after == 0
        document.max_retries = 0 if is_none else settings.retry_limit + 1
    if settings.ttl_ms is not None:
        document.message_ttl_seconds = settings.ttl_ms // 1000
    if settings.max_depth is not None:
        document.max_depth = settings.max_depth
    if settings.rate is not None:
        document.throughput_limit = int(settings.rate)
    if settings.archived_ms:
        document.replayable = True
        if settings.archived_ms < FOREVER_MS:
            document.replay_window_seconds = settings.archived_ms // 1000
    is_empty = document == OverridesDocument(topic) and not settings.registered
    return None if is_empty else document


def rfc3339(time: int) -> str:
    """A time in milliseconds, in whole seconds of UTC. There is none after the year 9999."""
    date = datetime.fromtimestamp(min(time, LAST_DATE_MS) // 1000, UTC)
    return date.strftime("%Y-%m-%dT%H:%M:%SZ")


def as_text(value: object) -> str:
    """A text as it is; what natively is something else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_DIGITS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")
"""From Crockford's base 32 to Python's."""

_VERSION, _VARIANT = 7 << 76, 2 << 62
_SUFFIX_BITS, _KEPT_BITS = 60, 54


class UuidIds:
    """Keys as UUIDs. A restored database still knows the ids from before."""

    def __init__(self, ids: IdCodec) -> None:
        self._ids = ids

    def text(self, key: int) -> str:
        return str(UUID(int=self._number(key)))

    def key(self, text: str) -> int | None:
        """The key that an id stands for, None where it can be no job's."""
        try:
            number = UUID(text).int
        except ValueError:
            return None
        low = (number >> 64 & 0xFFF) << 8 | number >> _KEPT_BITS & 0xFF
        key = (number >> 80) - EPOCH_MS << LOW_BITS | low
        return key if 0 < key < 2**63 and self._number(key) == number else None

    def _number(self, key: int) -> int:
        ulid = int(self._ids.text(key).translate(_DIGITS), 32)
        low = ulid >> _SUFFIX_BITS & (1 << LOW_BITS) - 1
        suffix = ulid >> _SUFFIX_BITS - _KEPT_BITS & (1 << _KEPT_BITS) - 1
        head = ulid >> _SUFFIX_BITS + LOW_BITS << 80 | low >> 8 << 64
        return head | (low & 0xFF) << _KEPT_BITS | suffix | _VERSION | _VARIANT


USUAL_PAGE, LARGEST_PAGE = 50, 200


class MessagePage(msgspec.Struct):
    """A page of a list, and how many items the list has."""

    items: Sequence[msgspec.Struct]
    total: int
    limit: int
    offset: int


def page_of(request: web.BaseRequest) -> tuple[int, int]:
    """The limit and the offset that a request asks for. What is out of range is clamped."""
    limit = min(_number(request.query.get("limit"), 1, USUAL_PAGE), LARGEST_PAGE)
    return limit, _number(request.query.get("offset"), 0, 0)


def _number(text: str | None, least: int, usual: int) -> int:
    """A whole number of a query. One that is missing, invalid or too small is the usual one."""
    if text is None or not text.isdecimal() or len(text) > 15 or int(text) < least:
        return usual
    return int(text)


_STATUSES: Statuses = {**NATIVE, errors.NotDead: 404}

_encode = msgspec.json.Encoder().encode
_SAID: dict[type[ZqError], str] = {
    errors.JobNotFound: "message not found",
    errors.NotInFlight: "message not found, or not in processing state",
    errors.NotDead: "message not found in a dead-letter topic",
    NotArchived: "the topic is not replayable: set the override `replayable` first",
    TargetExists: "consumer group already registered",
    TargetNotFound: "consumer group not found",
}
_WORDS = Words({"job": "message", "queue": "topic", "worker": "consumer"}, _SAID)


def answer(document: object, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, _encode(document), {"Content-Type": "application/json"} | (headers or {}))


def text_of(error: ZqError) -> str:
    """The text of an error, with messages in place of jobs."""
    return _WORDS.of(error)


def problem(error: ZqError) -> Answer:
    headers = {CODE_HEADER: error.code}
    refusal = answer({"error": text_of(error)}, status_in(_STATUSES, error), headers)
    return completed(refusal, error)
