"""Routers: what is appended to one topic is copied to another one, in the same transaction.

A copy has a number and a time of its own. Routers follow each other: a copy is copied on where it
arrives, but it never goes to a topic where it has been.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from zq.doors.topics.errors import RouterCycle, RouterFanIn, TooManyCopies
from zq.doors.topics.model import (
    MOST_TAG_BYTES,
    NewRecord,
    TagMatch,
    check_label,
    check_topic,
    tag_begins,
    tag_is,
)
from zq.model.errors import InvalidRequest

MAX_ROUTERS = 10_000
MOST_COPIES = 32
"""How many copies one record may have in all, since they are written in one tick."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:>-]{0,511}")


class TagFilter(NamedTuple):
    """Chooses records by their tags: those that are equal to `text`, or begin like `PREFIX*`."""

    field: Literal["tag"]
    operator: Literal["Eq", "Glob"]
    text: str

    @property
    def match(self) -> TagMatch:
        """The tags that it chooses."""
        return tag_is(self.text) if self.operator == "Eq" else tag_begins(self.text[:-1])


class RouterConfig(msgspec.Struct, frozen=True):
    """The two ends of a router, and what it copies."""

    source: str
    dest: str
    preserve_node: bool = True
    preserve_tag: bool = True
    create_dest: bool = True
    filter: TagFilter | None = None
    allow_cycle: bool = False

    @property
    def queues_named(self) -> tuple[str, str]:
        """The topics at the two ends of a router."""
        return self.source, self.dest


class TopicRouter(msgspec.Struct, array_like=True):
    """A router as it stands. `forwarded` counts its copies."""

    name: str
    config: RouterConfig
    forwarded: int = 0


class RoutersWanted(NamedTuple):
    """Up to `limit` routers behind the name `after`, those with some ends if they are named."""

    prefix: str
    source: str | None
    dest: str | None
    after: str
    limit: int


class RoutedWrite(NamedTuple):
    """The records that one router copies of one write."""

    router: TopicRouter
    records: Sequence[NewRecord]


def check_router(name: str) -> str:
    """Return the name of a router, or raise `InvalidRequest`."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:600]!r} cannot be a router: use up to 512 of the letters a-z and A-Z, digits"
            " and . _ : - >, and begin with a letter or a digit"
        )
    return name


def check_ends(config: RouterConfig) -> RouterConfig:
    """Return a config, or raise `InvalidRequest` for ends that no router can have."""
    if check_topic(config.source) == check_topic(config.dest):
        raise InvalidRequest("source and dest must be two topics")
    return config


def tag_filter(operator: str, text: str) -> TagFilter | None:
    """A checked filter, None where there is no such operator or the text does not fit it."""
    check_label("tag", text, MOST_TAG_BYTES)
    if operator == "Eq":
        return TagFilter("tag", "Eq", text)
    if operator == "Glob" and text.find("*") == len(text) - 1 >= 0:
        return TagFilter("tag", "Glob", text)
    return None


class Routing:
    """Some routers, by the topics that they copy from. They copy in the order of their names."""

    def __init__(self, routers: Iterable[TopicRouter]) -> None:
        self._from: dict[str, list[TopicRouter]] = {}
        for router in sorted(routers, key=attrgetter("name")):
            self._from.setdefault(router.config.source, []).append(router)

    def copies(self, topic: str, records: Sequence[NewRecord]) -> Iterator[RoutedWrite]:
        """All copies of a write to a topic, in the order in which they are appended."""
        yield from self._copies((topic,), records)

    def way(self, start: str, end: str) -> list[str] | None:
        """The topics on a way from one to another one, None where there is none."""
        come_from: dict[str, str] = {}
        ahead = [start]
        while ahead:
            topic = ahead.pop()
            if topic == end:
                way = [topic]
                while way[0] != start:
                    way.insert(0, come_from[way[0]])
                return way
            for router in self._from.get(topic, ()):
                dest = router.config.dest
                if dest not in come_from and dest != start:
                    come_from[dest] = topic
                    ahead.append(dest)
        return None

    def check_copies(self, topics: Iterable[str]) -> None:
        """Raise `TooManyCopies` where a record of one of the topics would have too many."""
        for topic in topics:
            for count, _ in enumerate(self._ways((topic,)), start=1):
                if count > MOST_COPIES:
                    raise TooManyCopies(topic, MOST_COPIES)

    def _copies(self, way: tuple[str, ...], records: Sequence[NewRecord]) -> Iterator[RoutedWrite]:
        for router in self._from.get(way[-1], ()):
            dest = router.config.dest
            if dest not in way and (chosen := _copied(router.config, records)):
                yield RoutedWrite(router, chosen)
                yield from self._copies((*way, dest), chosen)

    def _ways(self, way: tuple[str, ...]) -> Iterator[TopicRouter]:
        for router in self._from.get(way[-1], ()):
            if router.config.dest not in way:
                yield router
                yield from self._ways((*way, router.config.dest))


def check_place(name: str, config: RouterConfig, others: Iterable[TopicRouter]) -> None:
    """Raise the error of a router that cannot stand among the `others`.

    These are all that are connected with its ends. Raises `RouterFanIn`, `RouterCycle` or
    `TooManyCopies`.
    """
    rest = [router for router in others if router.name != name]
    for router in rest:
        if router.config.dest == config.dest and router.config.source != config.source:
            raise RouterFanIn(config.dest, router.config.source)
    back = Routing(rest).way(config.dest, config.source)
    if back is not None and not config.allow_cycle:
        raise RouterCycle([config.source, *back])
    every = [*rest, TopicRouter(name, config)]
    topics = {end for each in every for end in (each.config.source, each.config.dest)}
    Routing(every).check_copies(sorted(topics))


def _copied(config: RouterConfig, records: Sequence[NewRecord]) -> Sequence[NewRecord]:
    chosen = records
    if config.filter is not None:
        low, high = config.filter.match
        chosen = [
            record
            for record in records
            if record.tag is not None and record.tag >= low and (high is None or record.tag < high)
        ]
    if config.preserve_node and config.preserve_tag:
        return chosen
    return [_stripped(config, record) for record in chosen]


def _stripped(config: RouterConfig, record: NewRecord) -> NewRecord:
    node = record.node if config.preserve_node else None
    tag = record.tag if config.preserve_tag else None
    less = len(record.node or "") - len(node or "") + len(record.tag or "") - len(tag or "")
    return NewRecord(record.data, node, tag, record.meta, record.size - less)
