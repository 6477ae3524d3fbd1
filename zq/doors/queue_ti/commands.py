"""The commands about users, as those of `zq.model.commands` are about all else."""

from zq.doors.queue_ti.model import Grant, User
from zq.model.commands import Command


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
