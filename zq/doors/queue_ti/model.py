"""Users, what they are granted, and which grants cover what."""

import re
from enum import StrEnum

import msgspec

from zq.doors.queue_ti.errors import AdminNeeded, GrantMissing
from zq.model.errors import InvalidRequest
from zq.model.names import check_name

LEAST_PASSWORD = 12
"""The fewest characters of a password."""

MOST_PASSWORD = 1024
"""The most bytes of a password. Hashing longer ones would take too long."""

_NAME = re.compile(r"[^\x00-\x1f\x7f:]{1,255}")

ANY = "*"
BELOW = ".*"


class Action(StrEnum):
    """The right that a grant gives on its topics. No action includes another."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    CONSUME = "consume"


class Grant(msgspec.Struct, frozen=True):
    """An action on the topics of a pattern: `*`, a name, or `prefix.*` for what begins with it.

    One to consume names a consumer group.
    """

    id: str
    action: Action
    pattern: str
    created_at: int
    group: str | None = None

    def covers(self, topic: str) -> bool:
        """True if a topic matches the pattern. `orders.*` does not match `orders`."""
        if self.pattern == ANY:
            return True
        if self.pattern.endswith(BELOW):
            return topic.startswith(self.pattern.removesuffix(ANY))
        return self.pattern == topic


class User(msgspec.Struct, frozen=True):
    """A user with the hash of its password and its grants. An administrator may do everything."""

    id: str
    name: str
    hash: str
    is_admin: bool
    created_at: int
    updated_at: int
    grants: tuple[Grant, ...] = ()


class Permit:
    """The permissions of a caller; everything where there are no users."""

    def __init__(self, user: User | None = None) -> None:
        self.user = user

    @property
    def is_admin(self) -> bool:
        """True if it allows everything."""
        return self.user is None or self.user.is_admin

    def require_admin(self) -> None:
        """Raise `AdminNeeded` unless everything is allowed."""
        if not self.is_admin:
            raise AdminNeeded

    def require(self, action: Action, topic: str) -> None:
        """Raise `GrantMissing` unless there is a grant of the action that covers a topic."""
        if not (self.is_admin or self._of(action, topic)):
            raise GrantMissing

    def require_consuming(self, topic: str, group: str | None) -> None:
        """Raise `GrantMissing` unless a topic may be consumed, for a group if one is named.

        One who may write to a topic may consume it. Grants to consume a topic limit this to the
        groups that they name.
        """
        if self.is_admin:
            return
        consuming = self._of(Action.CONSUME, topic)
        if not (consuming or self._of(Action.WRITE, topic)):
            raise GrantMissing
        if group and consuming and group not in {grant.group for grant in consuming}:
            raise GrantMissing

    def _of(self, action: Action, topic: str) -> list[Grant]:
        grants = () if self.user is None else self.user.grants
        return [grant for grant in grants if grant.action is action and grant.covers(topic)]


EVERYTHING = Permit()
"""The permit of every caller where there are no users: it allows everything."""


def check_user_name(name: str) -> str:
    """A name that a user can have. Raises `InvalidRequest`."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name!r} cannot be a user's name: use up to 255 characters without control characters"
            " and colons"
        )
    return name


def check_password(password: str, least: int = LEAST_PASSWORD) -> str:
    """A password that a user can have. Raises `InvalidRequest`."""
    if len(password) < least:
        raise InvalidRequest(f"password must be at least {least} characters")
    if len(password.encode()) > MOST_PASSWORD:
        raise InvalidRequest(f"password must be at most {MOST_PASSWORD} bytes")
    return password


def check_pattern(pattern: str) -> str:
    """A pattern that a grant can have. Raises `InvalidRequest`."""
    if pattern != ANY:
        check_name("topic_pattern", pattern.removesuffix(BELOW))
    return pattern
