"""The WebSocket of the admin API: messages from viewers, and events for them, in JSON."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from zq.model import unique
from zq.model.errors import InvalidRequest
from zq.model.ids import IdCodec
from zq.model.job import BackoffRule, JobRecord, Retention
from zq.operators.admin.model import (
    MOST_ROWS,
    USUAL_ROWS,
    Anchor,
    AnchorKind,
    Direction,
    Fallback,
    JobSearch,
    JobWindow,
    ListName,
    WindowRequest,
)

MAX_MESSAGE = 64 * 1024
"""The largest message of a viewer, in bytes."""

Rows = Annotated[int, Meta(ge=0)]
Words = Annotated[tuple[str, ...], Meta(max_length=100)]


# Messages of viewers


class HeadPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="head"):
    """A window that begins with the first job of a list."""


class TailPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="tail"):
    """A window that ends with the last job of a list."""


class OffsetPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="offset"):
    """A window from a position on, or from an earlier one if the list is shorter."""

    offset: Rows


class AroundPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="around"):
    """With a job in the middle. If it is not in the list, the fallback counts."""

    id: str
    fallback: Fallback = Fallback.NOWHERE


class JobPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="job_id"):
    """A search begins beyond this job."""

    id: str


class StartPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="start"):
    """A search begins with the first job."""


class EndPlace(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """A search begins with the last job."""


WindowPlace = HeadPlace | TailPlace | OffsetPlace | AroundPlace


class SubscribeMessage(msgspec.Struct, frozen=True, tag="subscribe"):
    """Look at another window of a list."""

    list: ListName
    anchor: WindowPlace
    limit: Rows = USUAL_ROWS

    def request(self, ids: IdCodec) -> WindowRequest:
        """The window of the message."""
        limit = min(self.limit, MOST_ROWS)
        match self.anchor:
            case TailPlace():
                anchor = Anchor(AnchorKind.TAIL)
            case OffsetPlace(offset=offset) if offset:
                anchor = Anchor(AnchorKind.OFFSET, offset=offset)
            case AroundPlace(id=id, fallback=fallback):
                anchor = Anchor(AnchorKind.AROUND, key=ids.key(id), fallback=fallback)
            case _:
                anchor = Anchor()
        return WindowRequest(anchor, limit)


class DetailMessage(msgspec.Struct, frozen=True, tag="set_detail_level"):
    """Show more of each job, or less."""

    detail: bool


class DeleteMessage(msgspec.Struct, frozen=True, tag="delete_job"):
    """Delete a job."""

    id: str


class SearchWords(msgspec.Struct, frozen=True):
    """A job's queue, and its type, must contain one of these words."""

    queues: Words = ()
    types: Words = ()


class FindMessage(msgspec.Struct, frozen=True, tag="find"):
    """Look for the next job that matches."""

    list: ListName
    anchor: JobPlace | StartPlace | EndPlace
    direction: Direction
    query: SearchWords = SearchWords()
    limit: Rows = USUAL_ROWS

    def search(self, ids: IdCodec) -> JobSearch | None:
        """The search of the message; None if it begins at the end that it goes towards."""
        after = None
        match self.anchor, self.direction:
            case (StartPlace(), Direction.BACKWARD) | (EndPlace(), Direction.FORWARD):
                return None
            case JobPlace(id=id), _:
                after = ids.key(id)
        limit = min(self.limit, MOST_ROWS)
        return JobSearch(
            self.list, self.direction, after, self.query.queues, self.query.types, limit
        )


ViewerMessage = SubscribeMessage | DetailMessage | DeleteMessage | FindMessage

_messages: msgspec.json.Decoder[ViewerMessage] = msgspec.json.Decoder(ViewerMessage)


def decode_message(text: str | bytes) -> ViewerMessage:
    """A message of a viewer. Raises `InvalidRequest`."""
    try:
        return _messages.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"invalid message: {error}") from None


# Events for viewers


class ServerStatus(msgspec.Struct, frozen=True):
    """The server, and how many unfinished jobs it has. `uptime_ms` is in milliseconds."""

    version: str
    uptime_ms: int
    total_ready: int
    total_in_flight: int
    total_scheduled: int
    tier: str = "pro"
    zq: str = ""
    """Empty if it is the original server."""

    def total(self, list: ListName) -> int:
        """How many jobs a list has."""
        total: int = getattr(self, f"total_{list.value}")
        return total


class AdminJob(msgspec.Struct, omit_defaults=True, gc=False):
    """A job in a window. The fields after `failed_at` are present only in detail."""

    id: str
    queue: str
    job_type: str
    priority: int
    ready_at: int
    attempts: int
    dequeued_at: int | None = None
    failed_at: int | None = None
    payload: Raw | UnsetType = UNSET
    retry_limit: int | None = None
    backoff: BackoffRule | None = None
    retention: Retention | None = None
    unique_key: str | None = None
    unique_while: str | None = None
    waits: bool = False
    """Set by a viewer that shows ready jobs behind budgets and groups, too. The lists have none."""

    def facts(self) -> dict[str, Any]:
        """The fields that have a value."""
        fields = msgspec.structs.asdict(self)
        del fields["waits"]
        return {name: v for name, v in fields.items() if v is not None and v is not UNSET}


class WindowDocument(msgspec.Struct, omit_defaults=True):
    """A window of a list."""

    items: list[AdminJob]
    first_position: int
    total: int
    resolved_anchor: str | None = None


class SnapshotEvent(msgspec.Struct, tag_field="event", tag="job_snapshot"):
    """All windows with their contents."""

    server: ServerStatus
    ready: WindowDocument
    in_flight: WindowDocument
    scheduled: WindowDocument


class ChangeEvent(msgspec.Struct, omit_defaults=True, tag_field="event", tag="job_changed"):
    """One job that has entered or left a window, or has ended."""

    server: ServerStatus
    id: str
    status: str
    job: AdminJob | None = None


class HeartbeatEvent(msgspec.Struct, tag_field="event", tag="heartbeat"):
    """Only the server's state."""

    server: ServerStatus


class FindEvent(msgspec.Struct, tag_field="event", tag="find_result"):
    """The result of a search."""

    server: ServerStatus
    list: str
    matched_position: int | None
    window: WindowDocument


class ErrorEvent(msgspec.Struct, tag_field="event", tag="error"):
    """A message has failed. Clients of Zizq skip events that they do not know."""

    server: ServerStatus
    error: str
    code: str


encode_event = msgspec.json.Encoder().encode
"""An event as the text of a message."""


def window_document(window: JobWindow, ids: IdCodec, detail: bool) -> WindowDocument:
    """A window for viewers."""
    texts = ids.texts([job.key for job in window.jobs])
    items = [listed(job, id, detail) for job, id in zip(window.jobs, texts, strict=True)]
    anchor = None if window.anchor is None else ids.text(window.anchor)
    return WindowDocument(items, window.first_position, window.total, anchor)


def listed(job: JobRecord, id: str, detail: bool) -> AdminJob:
    """A job for viewers. A payload that is stored apart is left out."""
    document = AdminJob(
        id,
        job.queue,
        job.type,
        job.priority,
        job.ready_at,
        job.attempts - job.forgiven,
        job.dequeued_at,
        job.failed_at,
    )
    if detail:
        _add_detail(document, job)
    return document


def _add_detail(document: AdminJob, job: JobRecord) -> None:
    if job.payload is not None:
        document.payload = Raw(job.payload)
    if job.options is not None:
        document.retry_limit = job.options.retry_limit
        document.backoff = job.options.backoff
        document.retention = job.options.retention
    if job.unique_key is not None:
        document.unique_key = job.unique_key
        scope = job.unique_while or unique.Scope.QUEUED
        document.unique_while = unique.NAMES[scope]
