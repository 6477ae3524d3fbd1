"""The types of answers that handlers build by hand. Only the description uses them."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from zq.doors.topics.http.documents import ClaimedDocument, ServerRecord
from zq.doors.topics.model_routers import TagFilter
from zq.doors.topics.wire import ConfigDocument


class Performance(msgspec.Struct):
    """The measured time, in milliseconds."""

    server_total_ms: float
    fsync_ms: float | UnsetType = UNSET


class TopicAnswer(msgspec.Struct, kw_only=True):
    """The fields that every answer has."""

    performance: Performance


class TopicProblem(msgspec.Struct):
    """A stable code for programs, a message for people, and perhaps what it is about."""

    code: str
    message: str
    detail: dict[str, Any] | UnsetType = UNSET


class TopicRefusal(msgspec.Struct):
    """An error."""

    error: TopicProblem


class PutTopicAnswer(TopicAnswer):
    """A topic, and all that is set for it."""

    topic: str
    created: bool
    config: ConfigDocument


class QueueFigures(msgspec.Struct):
    """How many records of a queue can be claimed, are leased, and have gone elsewhere for good."""

    ready: int
    in_flight: int
    dead_lettered: int


class TopicStateAnswer(TopicAnswer):
    """A topic as it stands."""

    topic: str
    type: str
    head_seq: int
    earliest_seq: int
    next_seq: int
    count: int
    bytes: int
    config: ConfigDocument
    effective_priority: int
    last_write_ts: int | None
    last_read_ts: int | None
    queue: QueueFigures | UnsetType = UNSET


class TopicEntry(msgspec.Struct):
    """A topic in a list."""

    topic: str
    head_seq: int
    earliest_seq: int
    count: int
    bytes: int
    durable: bool
    effective_priority: int


class TopicsAnswer(TopicAnswer):
    """Topics by name. With a `next_cursor` there are more."""

    topics: list[TopicEntry]
    next_cursor: str | UnsetType = UNSET


class DeletedTopicAnswer(TopicAnswer):
    """True if there was a topic, with the routers that have gone with it."""

    topic: str
    deleted: bool
    routers_removed: list[str]


class AppendAnswer(TopicAnswer):
    """The numbers of the records of one write."""

    topic: str
    first_seq: int
    last_seq: int
    head_seq: int
    count: int
    created: bool
    deduped: bool
    duplicates: int | UnsetType = UNSET
    seqs: list[int] | UnsetType = UNSET


class Tombstone(msgspec.Struct):
    """Records that a reader has missed."""

    gap_from: int
    gap_to: int
    reason: Literal["cap", "ttl", "mixed", "recreated"]
    missed_estimate: int
    earliest_seq: int
    head_seq: int


class DiffAnswer(TopicAnswer):
    """Records behind a cursor, and the next cursor."""

    topic: str
    records: list[ServerRecord]
    next_from_seq: int
    head_seq: int
    earliest_seq: int
    caught_up: bool
    tombstone: Tombstone | None
    lag: int


class DeletedRecordsAnswer(TopicAnswer):
    """How many records were deleted, and how the topic stands."""

    topic: str
    deleted: int
    earliest_seq: int
    head_seq: int
    count: int
    bytes: int


class RouterAnswer(TopicAnswer):
    """A router. `created` follows a PUT, `forwarded_total` a GET."""

    router: str
    source: str
    dest: str
    preserve_node: bool
    preserve_tag: bool
    create_dest: bool
    filter: TagFilter | None
    allow_cycle: bool
    created: bool | UnsetType = UNSET
    forwarded_total: int | UnsetType = UNSET


class RouterEntry(msgspec.Struct):
    """A router in a list."""

    router: str
    source: str
    dest: str
    forwarded_total: int


class RoutersAnswer(TopicAnswer):
    """Routers by name. With a `next_cursor` there are more."""

    routers: list[RouterEntry]
    next_cursor: str | UnsetType = UNSET


class DeletedRouterAnswer(TopicAnswer):
    """True if there was a router."""

    router: str
    deleted: bool


class WatchedTopicState(msgspec.Struct):
    """The start of the reading of a topic, and its present state."""

    from_seq: int
    head_seq: int
    earliest_seq: int


class WatchAnswer(TopicAnswer):
    """A session, and where its stream is."""

    wid: str
    stream_url: str
    session_ttl_ms: int
    topics: dict[str, WatchedTopicState]


class TopicHealth(TopicAnswer):
    """The server runs, and for how long."""

    status: str
    version: str
    uptime_ms: int


class TopicReadiness(TopicAnswer):
    """The server takes requests, and how many topics it has."""

    status: str
    wal_replay_complete: bool
    topics: int


class ClaimAnswer(TopicAnswer):
    """Records that were leased to a node."""

    topic: str
    claimed: list[ClaimedDocument]
    count: int
    ready: int


class SettledAnswer(TopicAnswer, kw_only=True):
    """The answer to every settlement: the records that were left as they were, and the queue after
    it."""

    topic: str
    skipped: list[int]
    ready: int
    in_flight: int


class AckAnswer(SettledAnswer):
    """How many records are done."""

    acked: int


class NackAnswer(SettledAnswer):
    """How many records were given back."""

    nacked: int


class ExtendAnswer(SettledAnswer):
    """How many leases have a new end, and when each ends."""

    extended: int
    deadlines: dict[str, int]
