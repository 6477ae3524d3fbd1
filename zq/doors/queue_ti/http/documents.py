"""Messages, statistics and overrides as clients of queue-ti read them."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from zq.http.door import Ids
from zq.model.ids import minted_at
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
    """The metadata of a message."""
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
    """A time in milliseconds, in whole seconds of UTC."""
    return datetime.fromtimestamp(time // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_text(value: object) -> str:
    """A text as it is; what natively is something else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
