"""What `GET /v0/openapi.json` says besides the routes."""

from zq.doors.topics.http.description.operations import OPERATIONS
from zq.doors.topics.http.description.shapes import TopicRefusal
from zq.http.json_description import DoorText

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
