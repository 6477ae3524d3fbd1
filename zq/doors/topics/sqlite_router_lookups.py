"""Reading routers."""

import sqlite3

import msgspec

from zq.doors.topics.model import tag_begins
from zq.doors.topics.model_routers import RoutersWanted, TopicRouter
from zq.model.reach import EVERYWHERE, Reach
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

_router = msgspec.json.Decoder(TopicRouter)
_routers = msgspec.json.Decoder(list[TopicRouter])


def get_router(connection: sqlite3.Connection, name: str) -> TopicRouter | None:
    """A router as it stands."""
    row = connection.execute(QUERIES["router"], {"name": name}).fetchone()
    return None if row is None else _router.decode(row[0])


def count_routers(connection: sqlite3.Connection) -> int:
    """How many routers there are."""
    count: int = connection.execute(QUERIES["count_routers"]).fetchone()[0]
    return count


def list_routers(
    connection: sqlite3.Connection, wanted: RoutersWanted, reach: Reach
) -> list[TopicRouter]:
    """A page of routers by name, of those within reach."""
    found: list[TopicRouter] = []
    after = wanted.after
    while len(found) < wanted.limit:
        names = {"after": after, "limit": wanted.limit, **tag_begins(wanted.prefix)._asdict()}
        ends = {"source": wanted.source, "dest": wanted.dest}
        row = connection.execute(QUERIES["routers_page"], names | ends).fetchone()
        some = _routers.decode(row[0])
        found += [router for router in some if _is_within(reach, router)]
        if len(some) < wanted.limit:
            break
        after = some[-1].name
    return found[: wanted.limit]


def _is_within(reach: Reach, router: TopicRouter) -> bool:
    config = router.config
    return reach is EVERYWHERE or (reach.covers(config.source) and reach.covers(config.dest))
