"""Answers of the `/v0` dialect: topics and records, pages of lists, and errors."""

import base64
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from msgspec import UNSET, Raw, UnsetType, field

from zq.doors.topics import errors as topic_errors
from zq.doors.topics.model import (
    MOST_META_KEYS,
    Loss,
    NewRecord,
    TopicConfig,
    TopicPage,
    TopicRecord,
    TopicState,
    check_batch_size,
    new_record,
)
from zq.doors.topics.model_jobs import token
from zq.doors.topics.service_queues import ClaimedRecord
from zq.features.producers.model import ProducerFenced, SequenceGap
from zq.http.api.endpoints import NotAcceptable
from zq.http.api.problems import STATUSES as NATIVE
from zq.http.api.problems import completed
from zq.http.door import Statuses, Words, status_in
from zq.http.transport.answer import Answer
from zq.model import errors
from zq.model.errors import InvalidRequest, ZqError
from zq.model.ids import time_of
from zq.model.payload import MAX_DEPTH, nests_too_deeply


class RecordBody(msgspec.Struct, gc=False):
    """A record to be appended. `data` is any JSON."""

    data: Raw | UnsetType = UNSET
    node: str | None = None
    tag: str | None = None
    meta: Raw | UnsetType = UNSET


class ConfigDocument(TopicConfig, frozen=True, kw_only=True):
    """The configuration of a topic, as a document."""

    durable: bool


_object = msgspec.json.Decoder(dict[str, Raw])


def new_records(bodies: Sequence[RecordBody], node: str | None) -> list[NewRecord]:
    """Checked records; `node` is that of those that name none. Raises `InvalidRequest`."""
    check_batch_size(len(bodies))
    records = []
    for index, body in enumerate(bodies):
        try:
            records.append(_new_record(body, node))
        except InvalidRequest as error:
            error.message = f"records[{index}]: {error.message}"
            raise
    return records


def config_document(config: TopicConfig) -> ConfigDocument:
    fields: dict[str, Any] = msgspec.structs.asdict(config)
    return ConfigDocument(**fields, durable=config.durability == "fsync")


def _new_record(body: RecordBody, node: str | None) -> NewRecord:
    if body.data is UNSET:
        raise InvalidRequest("data is missing: send any JSON, null too")
    data = bytes(body.data).decode()
    if nests_too_deeply(data):
        raise InvalidRequest(f"data may nest up to {MAX_DEPTH} deep")
    meta = None
    if body.meta is not UNSET and (text := bytes(body.meta)) != b"null":
        meta = _meta(text)
    return new_record(data, node if body.node is None else body.node, body.tag, meta)


def _meta(text: bytes) -> str:
    try:
        fields = _object.decode(text)
    except msgspec.ValidationError:
        raise InvalidRequest("meta must be an object") from None
    if len(fields) > MOST_META_KEYS:
        raise InvalidRequest(f"meta must not have more than {MOST_META_KEYS} fields")
    meta = text.decode()
    if nests_too_deeply(meta):
        raise InvalidRequest(f"meta may nest up to {MAX_DEPTH} deep")
    return meta


class ServerRecord(msgspec.Struct, omit_defaults=True, gc=False):
    """A record. The names of fields that the server sets begin with a dollar."""

    seq: int = field(name="$seq")
    at: int = field(name="$ts")
    data: Raw | UnsetType
    node: str | UnsetType = field(name="$node", default=UNSET)
    tag: str | UnsetType = field(name="$tag", default=UNSET)
    meta: Raw | UnsetType = UNSET


class Shown(NamedTuple):
    """The parts of records that a reader wants to see."""

    tags: bool = False
    meta: bool = True
    data: bool = True


def record(record: TopicRecord, shown: Shown) -> ServerRecord:
    """A record with the wanted parts."""
    return ServerRecord(
        record.seq,
        record.at,
        record.data if shown.data else UNSET,
        UNSET if record.node is None else record.node,
        UNSET if record.tag is None or not shown.tags else record.tag,
        record.meta if shown.meta else UNSET,
    )


class ClaimedDocument(msgspec.Struct, omit_defaults=True, gc=False):
    """A record that was leased to a node."""

    seq: int = field(name="$seq")
    lease_id: str
    deadline: int
    at: int = field(name="$ts")
    deliveries: int
    data: Raw
    tag: str | UnsetType = field(name="$tag", default=UNSET)
    node: str | UnsetType = field(name="$node", default=UNSET)
    meta: Raw | UnsetType = UNSET


def claimed(record: ClaimedRecord) -> ClaimedDocument:
    """A record as its worker gets it."""
    job, labels = record.job, record.labels
    meta = None if job.extras is None else job.extras.meta
    assert job.payload is not None
    return ClaimedDocument(
        labels.seq,
        token(job.key, job.deliveries),
        record.deadline,
        time_of(job.key),
        job.deliveries,
        Raw(job.payload.encode()),
        UNSET if labels.tag is None else labels.tag,
        UNSET if labels.node is None else labels.node,
        UNSET if meta is None else Raw(meta.encode()),
    )


class PushedDocument(ClaimedDocument, omit_defaults=True, kw_only=True):
    """A claimed record with its topic, as a stream sends it."""

    topic: str


def pushed(topic: str, record: ClaimedRecord) -> PushedDocument:
    """A record as a stream sends it to its worker."""
    return PushedDocument(topic=topic, **msgspec.structs.asdict(claimed(record)))


def page(topic: str, found: TopicPage, shown: Shown) -> dict[str, Any]:
    """The answer to a reader."""
    lag = found.head_seq - found.next_seq
    return {
        "topic": topic,
        "records": [record(each, shown) for each in found.records],
        "next_from_seq": found.next_seq,
        "head_seq": found.head_seq,
        "earliest_seq": found.earliest_seq,
        "caught_up": not lag,
        "tombstone": tombstone(found.loss, found),
        "lag": lag,
    }


def tombstone(loss: Loss | None, found: TopicPage) -> dict[str, Any] | None:
    """The records that a reader has missed."""
    if loss is None:
        return None
    return {
        "gap_from": loss.first_seq,
        "gap_to": loss.last_seq,
        "reason": loss.reason,
        "missed_estimate": max(loss.last_seq - loss.first_seq + 1, 0),
        "earliest_seq": found.earliest_seq,
        "head_seq": found.head_seq,
    }


def state(topic: TopicState, read_at: int | None) -> dict[str, Any]:
    """A topic as it stands."""
    document: dict[str, Any] = {
        "topic": topic.name,
        "type": topic.config.type,
        "head_seq": topic.head_seq,
        "earliest_seq": topic.earliest_seq,
        "next_seq": topic.head_seq + 1,
        "count": topic.count,
        "bytes": topic.bytes,
        "config": config_document(topic.config),
        "effective_priority": topic.config.priority or 0,
        "last_write_ts": topic.last_at,
        "last_read_ts": read_at,
    }
    if topic.config.type == "queue":
        document["queue"] = {
            "ready": topic.ready,
            "in_flight": topic.in_flight,
            "dead_lettered": topic.dead_lettered,
        }
    return document


def entry(topic: TopicState) -> dict[str, Any]:
    """A topic in a list."""
    return {
        "topic": topic.name,
        "head_seq": topic.head_seq,
        "earliest_seq": topic.earliest_seq,
        "count": topic.count,
        "bytes": topic.bytes,
        "durable": topic.config.durability == "fsync",
        "effective_priority": topic.config.priority or 0,
    }


USUAL_PAGE, LARGEST_PAGE = 100, 1_000


def page_size(request: web.BaseRequest) -> int:
    """How many entries are wanted. Raises `InvalidRequest`."""
    text = request.query.get("page_size", "")
    if not text:
        return USUAL_PAGE
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:10]) <= LARGEST_PAGE):
        raise InvalidRequest(f"page_size must be between 1 and {LARGEST_PAGE}")
    return int(text)


def cursor_of(name: str) -> str:
    """The cursor of a page that ends with this name."""
    return base64.urlsafe_b64encode(name.encode()).decode()


def name_in(cursor: str, check: Callable[[str], str]) -> str:
    """The name behind which a page begins; empty without a cursor. Raises `InvalidRequest`."""
    if not cursor:
        return ""
    try:
        return check(base64.b64decode(cursor, b"-_", validate=True).decode())
    except (ValueError, InvalidRequest):
        raise InvalidRequest("this cursor is none of this server: begin without one") from None


BUSY = (errors.InboxFull, errors.ReadersBusy, errors.AnswersFull, errors.TooManyStreams)
"""Errors with the code `throttled`: the client should send less."""

STATUSES: Statuses = {**NATIVE, **dict.fromkeys(BUSY, 429)}

CODES: dict[type[ZqError], str] = {
    errors.InvalidRequest: "invalid_request",
    errors.Forbidden: "forbidden",
    errors.NotFound: "not_found",
    errors.TooLarge: "payload_too_large",
    errors.LimitReached: "throttled",
    **dict.fromkeys(BUSY, "throttled"),
    errors.ServiceUnavailable: "not_ready",
    errors.OutcomeUnknown: "shutting_down",
    **{
        kind: kind.code
        for kind in (
            topic_errors.BatchTooLarge,
            topic_errors.RecordTooLarge,
            topic_errors.TopicNotFound,
            topic_errors.RouterNotFound,
        )
    },
}
"""Codes that differ from those of the errors. An error without one has its nearest ancestor's."""

OF_STATUS = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}
"""Codes of requests that are not valid HTTP, by status. All others are `invalid_request`."""

_SAID: dict[type[ZqError], str] = {
    errors.JobNotFound: "record not found",
    errors.NotInFlight: "the record is leased by nobody",
}
_WORDS = Words(
    {"job": "record", "queue": "topic"},
    _SAID,
    frozenset({topic_errors.NotAQueue, topic_errors.TopicIsQueue}),
)
"""A queue is a kind of topic here: errors about the kinds say so."""

_encode = msgspec.json.Encoder().encode
_JSON = {"Content-Type": "application/json"}


class Stopwatch:
    """Measures how long a request takes."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def answer(self, document: dict[str, Any], status: int = 200, **measures: float) -> Answer:
        """Make an answer from a document. `performance` gets the measures, in milliseconds."""
        total = (time.perf_counter() - self._began) * 1000
        document["performance"] = {"server_total_ms": total, **measures}
        return Answer(status, _encode(document), _JSON)


def problem(error: ZqError) -> Answer:
    message = _message(error)
    return completed(refusal(status_of(error), _code(error), message, _detail(error)), error)


def status_of(error: ZqError) -> int:
    return status_in(STATUSES, error)


def refusal(
    status: int,
    code: str,
    message: str,
    detail: dict[str, object] | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """The form of every error."""
    error: dict[str, object] = {"code": code, "message": message}
    if detail:
        error["detail"] = detail
    return Answer(status, _encode({"error": error}), {**_JSON, **(headers or {})})


def not_found(request: web.BaseRequest) -> Answer:
    """The answer if the path does not exist."""
    return refusal(404, "not_found", f"there is no {request.path} here: see docs/topics.md")


def _message(error: ZqError) -> str:
    if isinstance(error, NotAcceptable):
        return f"this is a stream of {error.supported[0]}: accept that, or send no Accept"
    return _WORDS.of(error)


def _code(error: ZqError) -> str:
    named = (CODES[kind] for kind in type(error).__mro__ if kind in CODES)
    return next(named, error.code)


def _detail(error: ZqError) -> dict[str, object]:
    match error:
        case topic_errors.TopicNotFound():
            return {"topic": error.topic}
        case topic_errors.TopicLimitReached():
            return {"limit": error.limit, "max": error.most}
        case topic_errors.RouterNotFound():
            return {"router": error.router}
        case topic_errors.RouterCycle():
            return {"cycle": error.cycle}
        case topic_errors.RouterFanIn():
            return {"reason": "router_dest_fan_in"}
        case SequenceGap() | ProducerFenced():
            return dict(error.details)
        case topic_errors.BatchTooLarge():
            return {error.field: error.count, "max": error.most}
        case errors.LimitReached() | errors.ServiceUnavailable():
            return {"retry_after_ms": error.retry_after_s * 1000}
        case _:
            return {}
