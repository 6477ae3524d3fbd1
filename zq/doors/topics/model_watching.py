"""Watching topics: one reader follows many of them, and goes on where it was after a while."""

from collections.abc import Mapping
from typing import NamedTuple

from zq.doors.topics.model import check_topic
from zq.model.errors import InvalidRequest

MOST_WATCHED = 256
"""Topics of one session."""

MAX_SESSIONS = 10_000
SESSION_TTL_MS = 300_000
"""A session that nobody reads is forgotten after this time."""

USUAL_BATCH_BYTES = 256 * 1024


class WatchedTopic(NamedTuple):
    """The start of the reading of a topic: behind a number, or at its `tail`."""

    after: int = 0
    tail: bool = False


class WatchWanted(NamedTuple):
    """The topics that a session follows. Each page has up to `limit` records and about
    `most_bytes`."""

    topics: Mapping[str, WatchedTopic]
    nodes: tuple[str, ...]
    limit: int
    most_bytes: int


def check_watched(topics: Mapping[str, WatchedTopic]) -> None:
    """Raise `InvalidRequest` for topics that no session can follow."""
    if not topics:
        raise InvalidRequest("topics must name at least one topic")
    if len(topics) > MOST_WATCHED:
        raise InvalidRequest(
            f"topics names {len(topics)}, but at most {MOST_WATCHED} are allowed: use more sessions"
        )
    for topic in topics:
        check_topic(topic)


def rewound(cursors: Mapping[str, int], told: Mapping[str, int]) -> dict[str, int]:
    """The cursors of a reader that says how far it has come. They never move forward."""
    return {topic: min(cursor, told.get(topic, cursor)) for topic, cursor in cursors.items()}
