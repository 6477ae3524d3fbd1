"""Users, what they are granted, which grants cover what, and their commands and errors."""

import re
from enum import StrEnum

import msgspec

from zq.model.commands import Command
from zq.model.errors import Conflict, Forbidden, InvalidRequest, LimitReached, NotFound
from zq.model.names import check_name


class UserNotFound(NotFound):
    code = "user_not_found"

    def __init__(self) -> None:
        super().__init__("user not found")


class GrantNotFound(NotFound):
    code = "grant_not_found"

    def __init__(self) -> None:
        super().__init__("grant not found")


class UserExists(Conflict):
    code = "user_exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a user {name!r} already: choose another name")


class GrantExists(Conflict):
    code = "grant_exists"

    def __init__(self, group: str) -> None:
        super().__init__(f"the user may consume for the group {group!r} already")


class OwnUser(InvalidRequest):
    code = "own_user"

    def __init__(self) -> None:
        super().__init__("you cannot delete yourself: have another administrator do it")


class LastAdmin(Conflict):
    code = "last_admin"

    def __init__(self) -> None:
        super().__init__(
            "this is the last administrator, and without one nobody could change users: make"
            " another user an administrator first"
        )


class AdminNeeded(Forbidden):
    code = "admin_needed"

    def __init__(self) -> None:
        super().__init__("admin access required")


class GrantMissing(Forbidden):
    code = "grant_missing"

    def __init__(self) -> None:
        super().__init__("insufficient permissions")


class TooManyLogins(LimitReached):
    code = "too_many_logins"

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"too many failed logins as this user or from this address: try again in"
            f" {retry_after_s} s"
        )
        self.retry_after_s = retry_after_s


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


class CreateUser(Command[User], frozen=True):
    """Store a user. `UserExists` if its name is taken or, for one that has to be `first`, if there
    is any user."""

    user: User
    first: bool = False


class ChangeUser(Command[User], frozen=True):
    """Change what is not None of a user. `UserNotFound`, `UserExists` or `LastAdmin`."""

    id: str
    now: int
    name: str | None = None
    hash: str | None = None
    is_admin: bool | None = None


class DeleteUser(Command[None], frozen=True):
    """Delete a user with its grants. `UserNotFound` or `LastAdmin`."""

    id: str


class AddGrant(Command[Grant], frozen=True):
    """Store a grant of a user. `UserNotFound`, or `GrantExists` for a group that it has."""

    user: str
    grant: Grant


class DeleteGrant(Command[None], frozen=True):
    """Delete a grant of a user. `GrantNotFound`."""

    user: str
    id: str
