"""What `GET /api/openapi.json` says besides the routes."""

from zq.doors.queue_ti.http.description.operations import OPERATIONS
from zq.doors.queue_ti.http.description.shapes import MessageRefusal
from zq.http.json_description import DoorText

QUEUE_TI = DoorText(
    title="zq: messages",
    about=(
        "Programs send messages to topics, take them for a while, and acknowledge them. Bodies are"
        " JSON, or forms. Times are written as in RFC 3339, in UTC. Unknown fields of a body are"
        " passed over. An error is a message for people, and has a stable code in its header"
        " `Zq-Error`."
    ),
    prefix="/api",
    error=MessageRefusal,
    refusals={
        400: "What was sent is wrong.",
        401: "There are keys or users, and the request has none that is known.",
        403: "This key, this user, or this page in a browser, may not do this.",
        429: "A limit is reached: try again after `Retry-After` seconds.",
        503: "A passing cause: try again after `Retry-After` seconds.",
    },
    operations=OPERATIONS,
)
