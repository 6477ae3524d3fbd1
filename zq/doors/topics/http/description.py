"""The parameters and answers of each route, in one table. Handlers describe what routes do."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.doors.topics.http.bodies import (
    AppendBody,
    ClaimBody,
    DeleteBody,
    DiffBody,
    ExtendBody,
    RouterBody,
    SettleSeqsBody,
    WatchBody,
)
from zq.doors.topics.http.documents import (
    LARGEST_PAGE,
    USUAL_PAGE,
    ClaimedDocument,
    ConfigDocument,
    ServerRecord,
)
from zq.doors.topics.http.streams import MEDIA_TYPE
from zq.doors.topics.model import MOST_WRITE_KEY, TopicPatch
from zq.doors.topics.model_routers import TagFilter
from zq.features.producers.wire import HEADER, HEADER_TEXT
from zq.http.json_description import DoorText
from zq.verbs import TEXT, Operation, Parameter


class Performance(msgspec.Struct):
    """The measured time, in milliseconds."""

    server_total_ms: float
    fsync_ms: float | UnsetType = UNSET


class TopicAnswer(msgspec.Struct, kw_only=True):
    """The fields that every answer has."""

    performance: Performance


class TopicProblem(msgspec.Struct):
    """A stable code for programs, a message for people, and perhaps what it is about."""

    code: str
    message: str
    detail: dict[str, Any] | UnsetType = UNSET


class TopicRefusal(msgspec.Struct):
    """An error."""

    error: TopicProblem


class PutTopicAnswer(TopicAnswer):
    """A topic, and all that is set for it."""

    topic: str
    created: bool
    config: ConfigDocument


class QueueFigures(msgspec.Struct):
    """How many records of a queue can be claimed, are leased, and have gone elsewhere for good."""

    ready: int
    in_flight: int
    dead_lettered: int


class TopicStateAnswer(TopicAnswer):
    """A topic as it stands."""

    topic: str
    type: str
    head_seq: int
    earliest_seq: int
    next_seq: int
    count: int
    bytes: int
    config: ConfigDocument
    effective_priority: int
    last_write_ts: int | None
    last_read_ts: int | None
    queue: QueueFigures | UnsetType = UNSET


class TopicEntry(msgspec.Struct):
    """A topic in a list."""

    topic: str
    head_seq: int
    earliest_seq: int
    count: int
    bytes: int
    durable: bool
    effective_priority: int


class TopicsAnswer(TopicAnswer):
    """Topics by name. With a `next_cursor` there are more."""

    topics: list[TopicEntry]
    next_cursor: str | UnsetType = UNSET


class DeletedTopicAnswer(TopicAnswer):
    """True if there was a topic, with the routers that have gone with it."""

    topic: str
    deleted: bool
    routers_removed: list[str]


class AppendAnswer(TopicAnswer):
    """The numbers of the records of one write."""

    topic: str
    first_seq: int
    last_seq: int
    head_seq: int
    count: int
    created: bool
    deduped: bool
    duplicates: int | UnsetType = UNSET
    seqs: list[int] | UnsetType = UNSET


class Tombstone(msgspec.Struct):
    """Records that a reader has missed."""

    gap_from: int
    gap_to: int
    reason: Literal["cap", "ttl", "mixed", "recreated"]
    missed_estimate: int
    earliest_seq: int
    head_seq: int


class DiffAnswer(TopicAnswer):
    """Records behind a cursor, and the next cursor."""

    topic: str
    records: list[ServerRecord]
    next_from_seq: int
    head_seq: int
    earliest_seq: int
    caught_up: bool
    tombstone: Tombstone | None
    lag: int


class DeletedRecordsAnswer(TopicAnswer):
    """How many records were deleted, and how the topic stands."""

    topic: str
    deleted: int
    earliest_seq: int
    head_seq: int
    count: int
    bytes: int


class RouterAnswer(TopicAnswer):
    """A router. `created` follows a PUT, `forwarded_total` a GET."""

    router: str
    source: str
    dest: str
    preserve_node: bool
    preserve_tag: bool
    create_dest: bool
    filter: TagFilter | None
    allow_cycle: bool
    created: bool | UnsetType = UNSET
    forwarded_total: int | UnsetType = UNSET


class RouterEntry(msgspec.Struct):
    """A router in a list."""

    router: str
    source: str
    dest: str
    forwarded_total: int


class RoutersAnswer(TopicAnswer):
    """Routers by name. With a `next_cursor` there are more."""

    routers: list[RouterEntry]
    next_cursor: str | UnsetType = UNSET


class DeletedRouterAnswer(TopicAnswer):
    """True if there was a router."""

    router: str
    deleted: bool


class WatchedTopicState(msgspec.Struct):
    """The start of the reading of a topic, and its present state."""

    from_seq: int
    head_seq: int
    earliest_seq: int


class WatchAnswer(TopicAnswer):
    """A session, and where its stream is."""

    wid: str
    stream_url: str
    session_ttl_ms: int
    topics: dict[str, WatchedTopicState]


class TopicHealth(TopicAnswer):
    """The server runs, and for how long."""

    status: str
    version: str
    uptime_ms: int


class TopicReadiness(TopicAnswer):
    """The server takes requests, and how many topics it has."""

    status: str
    wal_replay_complete: bool
    topics: int


class ClaimAnswer(TopicAnswer):
    """Records that were leased to a node."""

    topic: str
    claimed: list[ClaimedDocument]
    count: int
    ready: int


class SettledAnswer(TopicAnswer, kw_only=True):
    """The answer to every settlement: the records that were left as they were, and the queue after
    it."""

    topic: str
    skipped: list[int]
    ready: int
    in_flight: int


class AckAnswer(SettledAnswer):
    """How many records are done."""

    acked: int


class NackAnswer(SettledAnswer):
    """How many records were given back."""

    nacked: int


class ExtendAnswer(SettledAnswer):
    """How many leases have a new end, and when each ends."""

    extended: int
    deadlines: dict[str, int]


_SWITCH = {"type": "string", "enum": ["true", "false"]}
_PAGING = (
    Parameter("prefix", TEXT, "How the names begin."),
    Parameter(
        "page_size",
        {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE},
        f"Entries of a page, {USUAL_PAGE}.",
    ),
    Parameter("cursor", TEXT, "The `next_cursor` of the page before."),
)
_NO_TOPIC = {404: "There is no such topic."}
_NO_QUEUE = {409: "The topic is a log."}
_NO_ROUTER = {404: "There is no such router."}
_NO_ROOM = {507: "There is no room on the disk."}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("GET", "/topics"): Operation({200: TopicsAnswer}, parameters=_PAGING),
    ("PUT", "/topics/{topic}"): Operation(
        {200: PutTopicAnswer, 201: PutTopicAnswer},
        TopicPatch,
        refusals={409: "The topic has another type, which never changes."},
    ),
    ("GET", "/topics/{topic}"): Operation(
        {200: TopicStateAnswer},
        parameters=(Parameter("touch", _SWITCH, "Whether this is a reading: `true`."),),
        refusals=_NO_TOPIC,
    ),
    ("DELETE", "/topics/{topic}"): Operation(
        {200: DeletedTopicAnswer},
        parameters=(Parameter("if_empty", _SWITCH, "Whether records keep it: `false`."),),
        refusals={409: "The topic has records."},
    ),
    ("POST", "/topics/{topic}"): Operation(
        {200: AppendAnswer, 201: AppendAnswer},
        AppendBody,
        parameters=(
            Parameter("return_seqs", _SWITCH, "Whether the answer lists all numbers: `true`."),
            Parameter(
                "Idempotency-Key",
                {"type": "string", "maxLength": MOST_WRITE_KEY},
                "As `idempotency_key`, which comes first.",
                place="header",
            ),
            Parameter(HEADER, TEXT, HEADER_TEXT, place="header"),
        ),
        refusals={
            **_NO_TOPIC,
            409: "The producer's numbers have a gap, or it is fenced off.",
            422: "The topic, or one that gets copies, is full.",
            **_NO_ROOM,
        },
    ),
    ("POST", "/topics/{topic}/diff"): Operation({200: DiffAnswer}, DiffBody, refusals=_NO_TOPIC),
    ("POST", "/topics/{topic}/delete"): Operation(
        {200: DeletedRecordsAnswer}, DeleteBody, refusals=_NO_TOPIC
    ),
    ("POST", "/topics/{topic}/claim"): Operation(
        {200: ClaimAnswer}, ClaimBody, refusals={**_NO_TOPIC, **_NO_QUEUE}
    ),
    ("GET", "/topics/{topic}/work"): Operation(
        {200: str},
        parameters=(
            Parameter("node", TEXT, "The name of the worker.", required=True),
            Parameter("max", {"type": "integer"}, "Records that may be open at a time, 1."),
            Parameter("lease_ms", {"type": "integer"}, "How long a lease lasts."),
            Parameter("token", TEXT, "The key, for browsers that cannot send it in a header."),
        ),
        refusals={**_NO_TOPIC, **_NO_QUEUE},
        streams=(MEDIA_TYPE,),
    ),
    ("POST", "/topics/{topic}/ack"): Operation(
        {200: AckAnswer}, SettleSeqsBody, refusals={**_NO_TOPIC, **_NO_QUEUE}
    ),
    ("POST", "/topics/{topic}/nack"): Operation(
        {200: NackAnswer}, SettleSeqsBody, refusals={**_NO_TOPIC, **_NO_QUEUE}
    ),
    ("POST", "/topics/{topic}/extend"): Operation(
        {200: ExtendAnswer}, ExtendBody, refusals={**_NO_TOPIC, **_NO_QUEUE}
    ),
    ("GET", "/routers"): Operation(
        {200: RoutersAnswer},
        parameters=(
            *_PAGING,
            Parameter("source", TEXT, "Only those that copy from this topic."),
            Parameter("dest", TEXT, "Only those that copy to this topic."),
        ),
    ),
    ("PUT", "/routers/{router}"): Operation(
        {200: RouterAnswer, 201: RouterAnswer},
        RouterBody,
        refusals={
            404: "There is no topic `dest`, and it is not to be created.",
            409: "The router would close a circle, or `dest` has copies of another topic.",
        },
    ),
    ("GET", "/routers/{router}"): Operation({200: RouterAnswer}, refusals=_NO_ROUTER),
    ("DELETE", "/routers/{router}"): Operation({200: DeletedRouterAnswer}),
    ("POST", "/watch"): Operation(
        {200: WatchAnswer},
        WatchBody,
        parameters=(
            Parameter("lenient", _SWITCH, "Whether unknown topics are left out: `false`."),
        ),
        refusals=_NO_TOPIC,
    ),
    ("GET", "/watch/{wid}"): Operation(
        {200: str},
        parameters=(
            Parameter("token", TEXT, "The key, for browsers that cannot send it in a header."),
            Parameter("Last-Event-ID", TEXT, "The event to go back to.", place="header"),
        ),
        refusals={404: "There is no such session."},
        streams=(MEDIA_TYPE,),
    ),
    ("GET", "/health"): Operation({200: TopicHealth}),
    ("GET", "/ready"): Operation({200: TopicReadiness}),
    ("GET", "/metrics"): Operation({200: str}),
    ("GET", "/openapi.json"): Operation({200: dict[str, Any]}),
}


TOPICS = DoorText(
    title="zq: topics",
    about=(
        "Programs append records to topics. Those of a log are read by cursors. Those of a queue"
        " are claimed and acknowledged. Bodies are JSON. Times are milliseconds since 1970. Unknown"
        " fields of a body are passed over. An error has a stable `code`, a message for people, and"
        " perhaps a `detail`."
    ),
    prefix="/v0",
    error=TopicRefusal,
    refusals={
        400: "What was sent is wrong.",
        401: "There are keys, and the request has none that is known.",
        403: "This key, or this page in a browser, may not do this.",
        406: "The client does not accept server-sent events.",
        429: "A limit is reached, or the server is busy: try again after `Retry-After` seconds.",
        503: "A passing cause: try again after `Retry-After` seconds.",
    },
    operations=OPERATIONS,
)
