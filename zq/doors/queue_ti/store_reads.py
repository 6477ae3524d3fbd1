"""The reads of users."""

import msgspec

from zq.doors.queue_ti.model import User
from zq.doors.queue_ti.store import UserReads
from zq.store.snapshot import Snapshot, SnapshotLanes, flat

_user = msgspec.json.Decoder(User)


class StoredUserReads(UserReads):
    """Reads by the lanes of a store."""

    def __init__(self, lanes: SnapshotLanes) -> None:
        self._looks = lanes.looks

    async def user(self, id: str) -> User | None:
        return await self._looks(_one, "user", id)

    async def named(self, name: str) -> User | None:
        return await self._looks(_one, "user_named", name)

    async def users(self) -> list[User]:
        return await self._looks(_every)


def _one(snapshot: Snapshot, query: str, value: str) -> User | None:
    text = snapshot.value(query, id=value, name=value)
    return None if text is None else _user.decode(text)


def _every(snapshot: Snapshot) -> list[User]:
    return [_user.decode(text) for text in flat(snapshot.rows("users"))]


READS = {UserReads: StoredUserReads}
