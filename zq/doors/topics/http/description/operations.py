"""The parameters and answers of each route, in one table. Handlers describe what routes do."""

from typing import Any

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
from zq.doors.topics.http.description.shapes import (
    AckAnswer,
    AppendAnswer,
    ClaimAnswer,
    DeletedRecordsAnswer,
    DeletedRouterAnswer,
    DeletedTopicAnswer,
    DiffAnswer,
    ExtendAnswer,
    NackAnswer,
    PutTopicAnswer,
    RouterAnswer,
    RoutersAnswer,
    TopicHealth,
    TopicReadiness,
    TopicRefusal,
    TopicsAnswer,
    TopicStateAnswer,
    WatchAnswer,
)
from zq.doors.topics.http.paging import LARGEST_PAGE, USUAL_PAGE
from zq.doors.topics.http.streams import MEDIA_TYPE
from zq.doors.topics.model import MOST_WRITE_KEY, TopicPatch
from zq.features.producers.wire import HEADER, HEADER_TEXT
from zq.http.api.description.operation import Operation
from zq.http.json_description import DoorText
from zq.verbs.parameters import TEXT
from zq.verbs.verb import Parameter

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
