"""Reading routers."""

import msgspec

from zq.doors.topics.model import tag_begins
from zq.doors.topics.model_routers import RouterConfig, RoutersWanted, TopicRouter
from zq.model.reach import EVERYWHERE, Reach
from zq.store.snapshot import Snapshot

_config = msgspec.json.Decoder(RouterConfig)


def get_router(snapshot: Snapshot, name: str) -> TopicRouter | None:
    """A router as it stands."""
    found = snapshot.rows("router", name=name)
    return _router(*found[0]) if found else None


def count_routers(snapshot: Snapshot) -> int:
    """How many routers there are."""
    return int(snapshot.value("count_routers"))


def list_routers(snapshot: Snapshot, wanted: RoutersWanted, reach: Reach) -> list[TopicRouter]:
    """A page of routers by name, of those within reach."""
    found: list[TopicRouter] = []
    after = wanted.after
    while len(found) < wanted.limit:
        names = {"after": after, "limit": wanted.limit, **tag_begins(wanted.prefix)._asdict()}
        ends = {"source": wanted.source, "dest": wanted.dest}
        some = [_router(*row) for row in snapshot.rows("routers_page", **names, **ends)]
        found += [router for router in some if _is_within(reach, router)]
        if len(some) < wanted.limit:
            break
        after = some[-1].name
    return found[: wanted.limit]


def _router(name: str, config: str, forwarded: int) -> TopicRouter:
    return TopicRouter(name, _config.decode(config), forwarded)


def _is_within(reach: Reach, router: TopicRouter) -> bool:
    config = router.config
    return reach is EVERYWHERE or (reach.covers(config.source) and reach.covers(config.dest))
