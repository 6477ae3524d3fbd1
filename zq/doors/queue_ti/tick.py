"""The tick's phase of changes to users and their grants."""

from collections.abc import Sequence
from typing import get_args

import msgspec

from zq.doors.queue_ti.model import (
    AddGrant,
    ChangeUser,
    CreateUser,
    DeleteGrant,
    DeleteUser,
    GrantExists,
    GrantNotFound,
    LastAdmin,
    User,
    UserExists,
    UserNotFound,
)
from zq.store.api import Sliced
from zq.tick.phases import Phase, Stage
from zq.tick.work import UnitOfWork

AnyUserChange = CreateUser | ChangeUser | DeleteUser | AddGrant | DeleteGrant

_user = msgspec.json.Decoder(User)


def change_users(work: UnitOfWork, commands: Sequence[AnyUserChange]) -> Sliced[list[object]]:
    """Change users, one command after the other."""
    replies: list[object] = []
    for command in commands:
        match command:
            case CreateUser():
                replies.append(_create(work, command))
            case ChangeUser():
                replies.append(_change(work, command))
            case DeleteUser():
                replies.append(_delete(work, command))
            case AddGrant():
                replies.append(_add_grant(work, command))
            case DeleteGrant():
                gone = work.tx.run("delete_grant", id=command.id, user=command.user)
                replies.append(None if gone else GrantNotFound())
        yield None
    return replies


def _create(work: UnitOfWork, command: CreateUser) -> object:
    user = command.user
    if command.first and work.tx.value("any_user"):
        return UserExists(user.name)
    stored = work.tx.run(
        "create_user",
        id=user.id,
        user=user.name,
        hash=user.hash,
        is_admin=int(user.is_admin),
        created=user.created_at,
    )
    return user if stored else UserExists(user.name)


def _change(work: UnitOfWork, command: ChangeUser) -> object:
    if work.tx.value("user", id=command.id) is None:
        return UserNotFound()
    if command.is_admin is False and _is_last_admin(work, command.id):
        return LastAdmin()
    changed = work.tx.run(
        "change_user",
        id=command.id,
        user=command.name,
        hash=command.hash,
        is_admin=None if command.is_admin is None else int(command.is_admin),
        changed=command.now,
    )
    if not changed:
        return UserExists(command.name or "")
    return _user.decode(work.tx.value("user", id=command.id))


def _delete(work: UnitOfWork, command: DeleteUser) -> object:
    if _is_last_admin(work, command.id):
        return LastAdmin()
    if not work.tx.run("delete_user", id=command.id):
        return UserNotFound()
    work.tx.write("delete_grants", id=command.id)
    return None


def _is_last_admin(work: UnitOfWork, id: str) -> bool:
    """True if this is a user, and the only administrator."""
    found = work.tx.value("user", id=id)
    return (
        found is not None
        and _user.decode(found).is_admin
        and not work.tx.value("other_admin", id=id)
    )


def _add_grant(work: UnitOfWork, command: AddGrant) -> object:
    if work.tx.value("user", id=command.user) is None:
        return UserNotFound()
    grant = command.grant
    stored = work.tx.run(
        "add_grant",
        id=grant.id,
        user=command.user,
        action=grant.action.value,
        pattern=grant.pattern,
        group=grant.group,
        created=grant.created_at,
    )
    return grant if stored else GrantExists(grant.group or "")


PHASES = (Phase(Stage.RECORD, change_users, get_args(AnyUserChange)),)
