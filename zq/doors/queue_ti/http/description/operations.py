"""The parameters and answers of each route, in one table. Handlers describe what routes do."""

from typing import Any

from zq.doors.queue_ti.http import bodies
from zq.doors.queue_ti.http.auth import users
from zq.doors.queue_ti.http.auth.api import LoginBody
from zq.doors.queue_ti.http.auth.users import GrantDocument, UserDocument
from zq.doors.queue_ti.http.description import shapes
from zq.doors.queue_ti.http.description.shapes import MessageRefusal
from zq.doors.queue_ti.http.documents import OverridesDocument
from zq.doors.queue_ti.http.pages import LARGEST_PAGE, USUAL_PAGE
from zq.doors.queue_ti.http.schemas import SchemaDocument
from zq.http.api.description.operation import Operation
from zq.http.json_description import DoorText
from zq.verbs.parameters import TEXT
from zq.verbs.verb import Parameter

_NUMBER = {"type": "integer", "minimum": 0}
_PAGING = (
    Parameter("limit", _NUMBER, f"Entries of a page: {USUAL_PAGE}, at most {LARGEST_PAGE}."),
    Parameter("offset", _NUMBER, "Entries to pass over."),
)
_NO_MESSAGE = {404: "There is no such message, or nobody has taken it."}
_NO_LETTER = {404: "There is no such message, or it is no dead letter."}
_NO_OVERRIDES = {404: "The topic has no overrides."}
_NO_USER = {404: "There is no such user or grant."}
_NO_ROOM = {507: "There is no room on the disk."}
_UNFIT = {422: "The topic is not registered, or its schema does not allow the payload."}
_PAST = {422: "The topic is not replayable, or has no messages from that time any longer."}

OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/messages"): Operation(
        {201: shapes.NewMessageAnswer}, bodies.EnqueueBody, refusals={**_UNFIT, **_NO_ROOM}
    ),
    ("GET", "/messages"): Operation(
        {200: shapes.MessagePageAnswer},
        parameters=(Parameter("topic", TEXT, "Only messages of this topic."), *_PAGING),
    ),
    ("POST", "/messages/dequeue"): Operation({200: shapes.MessagesAnswer}, bodies.DequeueBody),
    ("POST", "/messages/{id}/ack"): Operation(
        {204: None}, bodies.SettleBody, optional_body=True, refusals=_NO_MESSAGE
    ),
    ("POST", "/messages/{id}/nack"): Operation(
        {204: None}, bodies.SettleBody, optional_body=True, refusals=_NO_MESSAGE
    ),
    ("POST", "/messages/{id}/requeue"): Operation({204: None}, refusals=_NO_LETTER),
    ("GET", "/topic-configs"): Operation({200: shapes.EveryOverride}),
    ("GET", "/topic-configs/{topic}"): Operation({200: OverridesDocument}, refusals=_NO_OVERRIDES),
    ("PUT", "/topic-configs/{topic}"): Operation({200: OverridesDocument}, bodies.OverridesBody),
    ("DELETE", "/topic-configs/{topic}"): Operation({204: None}, refusals=_NO_OVERRIDES),
    ("GET", "/topics/{topic}/consumer-groups"): Operation({200: shapes.GroupsAnswer}),
    ("POST", "/topics/{topic}/consumer-groups"): Operation(
        {201: None},
        bodies.GroupBody,
        refusals={409: "The group is registered already.", **_NO_ROOM},
    ),
    ("DELETE", "/topics/{topic}/consumer-groups/{group}"): Operation(
        {204: None}, refusals={404: "There is no such group."}
    ),
    ("POST", "/topics/{topic}/purge"): Operation(
        {200: shapes.DeletedMessages}, bodies.PurgeBody, optional_body=True
    ),
    ("DELETE", "/topics/{topic}/messages/by-key/{key}"): Operation({200: shapes.DeletedMessages}),
    ("POST", "/topics/{topic}/replay"): Operation(
        {200: shapes.ReplayAnswer},
        bodies.ReplayBody,
        optional_body=True,
        refusals={**_PAST, **_NO_ROOM},
    ),
    ("GET", "/topics/{topic}/message-log"): Operation(
        {200: shapes.ArchivePageAnswer}, parameters=_PAGING
    ),
    ("DELETE", "/topics/{topic}/message-log"): Operation(
        {200: shapes.DeletedMessages},
        parameters=(
            Parameter(
                "before",
                {"type": "string", "format": "date-time"},
                "Delete what was acknowledged before this time.",
                required=True,
            ),
        ),
    ),
    ("GET", "/stats"): Operation({200: shapes.StatisticsAnswer}),
    ("POST", "/admin/expiry-reaper/run"): Operation({200: shapes.ExpiredMessages}),
    ("POST", "/admin/delete-reaper/run"): Operation({200: shapes.DeletedMessages}),
    ("GET", "/admin/delete-reaper/schedule"): Operation({200: shapes.ScheduleAnswer}),
    ("PUT", "/admin/delete-reaper/schedule"): Operation(
        {200: shapes.ScheduleAnswer},
        bodies.ScheduleBody,
        refusals={422: "The schedule means nothing."},
    ),
    ("POST", "/admin/archive-reaper/run"): Operation({200: shapes.DeletedMessages}),
    ("GET", "/topic-schemas"): Operation({200: shapes.EveryPayloadSchema}),
    ("GET", "/topic-schemas/{topic}"): Operation(
        {200: SchemaDocument}, refusals={404: "The topic has no schema."}
    ),
    ("PUT", "/topic-schemas/{topic}"): Operation({200: SchemaDocument}, bodies.SchemaBody),
    ("DELETE", "/topic-schemas/{topic}"): Operation({204: None}),
    ("GET", "/version"): Operation({200: shapes.VersionAnswer}),
    ("GET", "/openapi.json"): Operation({200: dict[str, Any]}),
    ("GET", "/auth/status"): Operation({200: shapes.AuthStatus}),
    ("POST", "/auth/login"): Operation(
        {200: shapes.TokenAnswer}, LoginBody, refusals={401: "Name or password is wrong."}
    ),
    ("POST", "/auth/refresh"): Operation(
        {200: shapes.TokenAnswer}, refusals={401: "The token is not valid."}
    ),
    ("GET", "/users"): Operation({200: shapes.UsersAnswer}),
    ("POST", "/users"): Operation(
        {201: UserDocument}, users.NewUserBody, refusals={409: "There is a user of this name."}
    ),
    ("PUT", "/users/{id}"): Operation(
        {200: UserDocument},
        users.UserPatchBody,
        refusals={
            **_NO_USER,
            409: "There is a user of this name, or this is the last administrator.",
        },
    ),
    ("DELETE", "/users/{id}"): Operation(
        {204: None}, refusals={**_NO_USER, 409: "This is the last administrator."}
    ),
    ("GET", "/users/{id}/grants"): Operation({200: shapes.GrantsAnswer}, refusals=_NO_USER),
    ("POST", "/users/{id}/grants"): Operation(
        {201: GrantDocument}, users.GrantBody, refusals=_NO_USER
    ),
    ("DELETE", "/users/{id}/grants/{grant}"): Operation({204: None}, refusals=_NO_USER),
    ("POST", "/users/{id}/consumer-group-grants"): Operation(
        {201: GrantDocument},
        users.GroupGrantBody,
        refusals={**_NO_USER, 409: "The user has this grant."},
    ),
}


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
