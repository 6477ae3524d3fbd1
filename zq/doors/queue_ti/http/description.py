"""The parameters and answers of each route, in one table. Handlers describe what routes do."""

from typing import Any

import msgspec

from zq.doors.queue_ti.http import bodies, users
from zq.doors.queue_ti.http.documents import (
    LARGEST_PAGE,
    USUAL_PAGE,
    MessageDocument,
    OverridesDocument,
)
from zq.doors.queue_ti.http.messages import ArchivedDocument
from zq.doors.queue_ti.http.topics import SchemaDocument
from zq.doors.queue_ti.http.users import GrantDocument, LoginBody, UserDocument
from zq.http.json_description import DoorText
from zq.verbs import TEXT, Operation, Parameter


class MessageRefusal(msgspec.Struct):
    """An error: a message for people. The header `Zq-Error` has its stable code."""

    error: str


class NewMessageAnswer(msgspec.Struct):
    """The id of a message."""

    id: str


class MessagesAnswer(msgspec.Struct):
    """Messages that were taken, the oldest first."""

    messages: list[MessageDocument]


class MessagePageAnswer(msgspec.Struct):
    """A page of messages, and how many there are."""

    items: list[MessageDocument]
    total: int
    limit: int
    offset: int


class ArchivePageAnswer(msgspec.Struct):
    """A page of acknowledged messages, and how many there are."""

    items: list[ArchivedDocument]
    total: int
    limit: int
    offset: int


class EveryOverride(msgspec.Struct):
    """The overrides of topics that have some."""

    items: list[OverridesDocument]


class TopicCount(msgspec.Struct):
    """How many messages a topic has in a status."""

    topic: str
    status: str
    count: int


class StatisticsAnswer(msgspec.Struct):
    """The counts of all topics."""

    topics: list[TopicCount]


class DeletedMessages(msgspec.Struct):
    """How many were deleted."""

    deleted: int


class ExpiredMessages(msgspec.Struct):
    """How many have expired."""

    expired: int


class ScheduleAnswer(msgspec.Struct):
    """A schedule of cron, and whether there is one."""

    schedule: str
    active: bool


class ReplayAnswer(msgspec.Struct):
    """How many messages came once more. `from_time` is as it was sent."""

    topic: str
    enqueued: int
    from_time: str


class GroupsAnswer(msgspec.Struct):
    """The names of consumer groups, in the order of their registration."""

    items: list[str]


class EveryPayloadSchema(msgspec.Struct):
    """The schemas of topics that have one."""

    items: list[SchemaDocument]


class AuthStatus(msgspec.Struct):
    """True if users have to log in."""

    auth_required: bool


class TokenAnswer(msgspec.Struct):
    """A token, for `Authorization: Bearer`."""

    token: str


class VersionAnswer(msgspec.Struct):
    """The version of the server."""

    version: str


class UsersAnswer(msgspec.Struct):
    """Every user."""

    items: list[UserDocument]


class GrantsAnswer(msgspec.Struct):
    """The grants of a user."""

    items: list[GrantDocument]


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
        {201: NewMessageAnswer}, bodies.EnqueueBody, refusals={**_UNFIT, **_NO_ROOM}
    ),
    ("GET", "/messages"): Operation(
        {200: MessagePageAnswer},
        parameters=(Parameter("topic", TEXT, "Only messages of this topic."), *_PAGING),
    ),
    ("POST", "/messages/dequeue"): Operation({200: MessagesAnswer}, bodies.DequeueBody),
    ("POST", "/messages/{id}/ack"): Operation(
        {204: None}, bodies.SettleBody, optional_body=True, refusals=_NO_MESSAGE
    ),
    ("POST", "/messages/{id}/nack"): Operation(
        {204: None}, bodies.SettleBody, optional_body=True, refusals=_NO_MESSAGE
    ),
    ("POST", "/messages/{id}/requeue"): Operation({204: None}, refusals=_NO_LETTER),
    ("GET", "/topic-configs"): Operation({200: EveryOverride}),
    ("GET", "/topic-configs/{topic}"): Operation({200: OverridesDocument}, refusals=_NO_OVERRIDES),
    ("PUT", "/topic-configs/{topic}"): Operation({200: OverridesDocument}, bodies.OverridesBody),
    ("DELETE", "/topic-configs/{topic}"): Operation({204: None}, refusals=_NO_OVERRIDES),
    ("GET", "/topics/{topic}/consumer-groups"): Operation({200: GroupsAnswer}),
    ("POST", "/topics/{topic}/consumer-groups"): Operation(
        {201: None},
        bodies.GroupBody,
        refusals={409: "The group is registered already.", **_NO_ROOM},
    ),
    ("DELETE", "/topics/{topic}/consumer-groups/{group}"): Operation(
        {204: None}, refusals={404: "There is no such group."}
    ),
    ("POST", "/topics/{topic}/purge"): Operation(
        {200: DeletedMessages}, bodies.PurgeBody, optional_body=True
    ),
    ("DELETE", "/topics/{topic}/messages/by-key/{key}"): Operation({200: DeletedMessages}),
    ("POST", "/topics/{topic}/replay"): Operation(
        {200: ReplayAnswer},
        bodies.ReplayBody,
        optional_body=True,
        refusals={**_PAST, **_NO_ROOM},
    ),
    ("GET", "/topics/{topic}/message-log"): Operation({200: ArchivePageAnswer}, parameters=_PAGING),
    ("DELETE", "/topics/{topic}/message-log"): Operation(
        {200: DeletedMessages},
        parameters=(
            Parameter(
                "before",
                {"type": "string", "format": "date-time"},
                "Delete what was acknowledged before this time.",
                required=True,
            ),
        ),
    ),
    ("GET", "/stats"): Operation({200: StatisticsAnswer}),
    ("POST", "/admin/expiry-reaper/run"): Operation({200: ExpiredMessages}),
    ("POST", "/admin/delete-reaper/run"): Operation({200: DeletedMessages}),
    ("GET", "/admin/delete-reaper/schedule"): Operation({200: ScheduleAnswer}),
    ("PUT", "/admin/delete-reaper/schedule"): Operation(
        {200: ScheduleAnswer},
        bodies.ScheduleBody,
        refusals={422: "The schedule means nothing."},
    ),
    ("POST", "/admin/archive-reaper/run"): Operation({200: DeletedMessages}),
    ("GET", "/topic-schemas"): Operation({200: EveryPayloadSchema}),
    ("GET", "/topic-schemas/{topic}"): Operation(
        {200: SchemaDocument}, refusals={404: "The topic has no schema."}
    ),
    ("PUT", "/topic-schemas/{topic}"): Operation({200: SchemaDocument}, bodies.SchemaBody),
    ("DELETE", "/topic-schemas/{topic}"): Operation({204: None}),
    ("GET", "/version"): Operation({200: VersionAnswer}),
    ("GET", "/openapi.json"): Operation({200: dict[str, Any]}),
    ("GET", "/auth/status"): Operation({200: AuthStatus}),
    ("POST", "/auth/login"): Operation(
        {200: TokenAnswer}, LoginBody, refusals={401: "Name or password is wrong."}
    ),
    ("POST", "/auth/refresh"): Operation(
        {200: TokenAnswer}, refusals={401: "The token is not valid."}
    ),
    ("GET", "/users"): Operation({200: UsersAnswer}),
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
    ("GET", "/users/{id}/grants"): Operation({200: GrantsAnswer}, refusals=_NO_USER),
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
