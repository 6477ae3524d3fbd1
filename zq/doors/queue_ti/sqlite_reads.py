"""The reads of users."""

import sqlite3

import msgspec

from zq.doors.queue_ti.model import User
from zq.doors.queue_ti.store import UserReads
from zq.store.sqlite.lanes import ReadLanes
from zq.store.sqlite.queries import load

QUERIES = load("zq.doors.queue_ti.sqlite_tick")

_user = msgspec.json.Decoder(User)


class SqliteUserReads(UserReads):
    """Reads by the connections of a pool."""

    def __init__(self, lanes: ReadLanes) -> None:
        self._looks = lanes.looks

    async def user(self, id: str) -> User | None:
        return await self._looks(_one, "user", id)

    async def named(self, name: str) -> User | None:
        return await self._looks(_one, "user_named", name)

    async def users(self) -> list[User]:
        return await self._looks(_every)


def _one(connection: sqlite3.Connection, query: str, value: str) -> User | None:
    row = connection.execute(QUERIES[query], {"id": value, "name": value}).fetchone()
    return None if row is None else _user.decode(row[0])


def _every(connection: sqlite3.Connection) -> list[User]:
    return [_user.decode(row) for (row,) in connection.execute(QUERIES["users"])]


READS = {UserReads: SqliteUserReads}
