"""The tick's phase of routers, and what they copy of the writes of a tick."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from zq.doors.topics.commands import DeleteRouter, PutRouter, RouterPut
from zq.doors.topics.errors import TooManyRouters, TooManyTopics, TopicNotFound
from zq.doors.topics.model import DEFAULT_CONFIG, MAX_TOPICS, NewRecord
from zq.doors.topics.model_routers import (
    MAX_ROUTERS,
    RoutedWrite,
    Routing,
    TopicRouter,
    check_place,
)
from zq.doors.topics.tick_topics import create_topic
from zq.doors.topics.tick_trimming import find_topics
from zq.model.errors import ZqError
from zq.store.api import Sliced, as_json
from zq.tick.work import UnitOfWork

AnyRouterChange = PutRouter | DeleteRouter


def change_routers(work: UnitOfWork, commands: Sequence[AnyRouterChange]) -> Sliced[list[object]]:
    """Change routers, one command after the other."""
    replies: list[object] = []
    for command in commands:
        try:
            if isinstance(command, PutRouter):
                replies.append(_put(work, command))
            else:
                replies.append(_delete(work, command))
        except ZqError as refusal:
            replies.append(refusal)
        yield None
    return replies


class Forwarding:
    """The routers behind some topics, and how much they have copied in this tick."""

    def __init__(self, work: UnitOfWork, topics: Iterable[str]) -> None:
        self._work = work
        routers = _found(work, "routers_behind", topics=sorted(set(topics)))
        self.dests = {router.config.dest for router in routers}
        """The topics that may get copies."""
        self._routing = Routing(routers)
        self._counts: Counter[str] = Counter()

    def copies(self, topic: str, records: Sequence[NewRecord]) -> Iterator[RoutedWrite]:
        """All copies of a write to a topic, in the order in which they are appended."""
        return self._routing.copies(topic, records)

    def count(self, copies: RoutedWrite) -> None:
        """Note that copies are appended."""
        self._counts[copies.router.name] += len(copies.records)

    def finish(self) -> None:
        """Write how much was copied."""
        if self._counts:
            self._work.tx.write("count_forwarded", counts=list(self._counts.items()))


def _put(work: UnitOfWork, command: PutRouter) -> RouterPut:
    name, config = command.name, command.config
    former = _named(work, name)
    if former is not None:
        _require(former, command)
    elif work.tx.value("count_routers") >= MAX_ROUTERS:
        raise TooManyRouters(MAX_ROUTERS)
    ends = (config.source, config.dest)
    check_place(name, config, _found(work, "routers_around", topics=ends))
    known = find_topics(work, ends)
    if config.dest not in known and not config.create_dest:
        raise TopicNotFound(config.dest)
    missing = [end for end in ends if end not in known]
    if missing and work.tx.value("count_topics") + len(missing) > MAX_TOPICS:
        raise TooManyTopics(MAX_TOPICS)
    for end in missing:
        create_topic(work, end, DEFAULT_CONFIG)
    ends_by_name = {"source": config.source, "dest": config.dest}
    work.tx.write("write_router", router=name, config=as_json(config), **ends_by_name)
    return RouterPut(created=former is None)


def _delete(work: UnitOfWork, command: DeleteRouter) -> bool:
    former = _named(work, command.name)
    if former is None:
        return False
    _require(former, command)
    work.tx.write("delete_router", router=command.name)
    return True


def _require(router: TopicRouter, command: AnyRouterChange) -> None:
    """Raise `QueueOutOfReach` where an end of the router is out of the sender's reach."""
    command.reach.require([router.config])


def _named(work: UnitOfWork, name: str) -> TopicRouter | None:
    return next(iter(_found(work, "routers_named", router=name)), None)


def _found(work: UnitOfWork, query: str, **parameters: object) -> list[TopicRouter]:
    return msgspec.convert(work.tx.table(query, **parameters), list[TopicRouter])
