"""The types of answers that handlers build by hand. Only the description uses them."""

import msgspec

from zq.doors.queue_ti.http.archive import ArchivedDocument
from zq.doors.queue_ti.http.auth.users import GrantDocument, UserDocument
from zq.doors.queue_ti.http.documents import MessageDocument, OverridesDocument
from zq.doors.queue_ti.http.schemas import SchemaDocument


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
