"""What may be read of users, whichever the store is."""

import msgspec

from zq.doors.queue_ti.model import User
from zq.store.snapshot import Snapshot, SnapshotLanes, flat

CONSTANTS = {
    "sqlite": {
        "user_row": (
            "json_object('id', id, 'name', name, 'hash', hash, 'created_at', created_at,"
            " 'is_admin', json(iif(is_admin, 'true', 'false')), 'updated_at', updated_at, 'grants',"
            " (SELECT json_group_array(json_object('id', g.id, 'action', g.action, 'pattern',"
            " g.pattern, 'created_at', g.created_at, 'group', g.group_id)) FROM (SELECT * FROM"
            " user_grants WHERE user = users.id ORDER BY created_at) AS g))"
        )
    },
    "postgres": {
        "user_row": (
            "json_build_object('id', id, 'name', name, 'hash', hash, 'created_at', created_at,"
            " 'is_admin', is_admin = 1, 'updated_at', updated_at, 'grants',"
            " coalesce((SELECT json_agg(json_build_object('id', g.id, 'action', g.action,"
            " 'pattern', g.pattern, 'created_at', g.created_at, 'group', g.group_id)"
            " ORDER BY g.created_at) FROM user_grants AS g"
            " WHERE g.\"user\" = users.id), '[]'::json))::text"
        )
    },
}
"""What words in the queries stand for. A row is a user with its grants, by the names of the fields
of `User`."""

_user = msgspec.json.Decoder(User)


class UserReads:
    """Each method sees one moment, and nothing that is not on the disk."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks

    async def user(self, id: str) -> User | None:
        """A user with its grants."""
        return await self._looks(_one, "user", id)

    async def named(self, name: str) -> User | None:
        return await self._looks(_one, "user_named", name)

    async def users(self) -> list[User]:
        """Every user with its grants, in the order of their names."""
        return await self._looks(_every)


def _one(snapshot: Snapshot, query: str, value: str) -> User | None:
    text = snapshot.value(query, id=value, name=value)
    return None if text is None else _user.decode(text)


def _every(snapshot: Snapshot) -> list[User]:
    return [_user.decode(text) for text in flat(snapshot.rows("users"))]


READS = (UserReads,)
