"""Topics: named logs that programs append records to and read by a cursor of their own.

A record has a number, its `seq`, that grows by one with each record of its topic. Records go by
age, by the caps of their topic, or because somebody deletes them; the number of one that is gone is
never given again while the topic lives.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.doors.topics.errors import BatchTooLarge, RecordTooLarge, TopicFull
from zq.model.errors import InvalidRequest
from zq.model.job import MAX_TIME

SEQ_BITS = 41
"""Bits of a record's key that are its number; those above are its topic's."""
MAX_SEQ = (1 << SEQ_BITS) - 1
MAX_TOPIC_ID = (1 << (63 - SEQ_BITS)) - 1

MAX_TOPICS = 100_000
MOST_RECORDS = 10_000
"""Records in one write."""
MOST_RECORD_BYTES = 1 << 20
"""Bytes of one record's `data` and `meta`."""
MOST_META_BYTES, MOST_META_KEYS = 16 * 1024, 64
MOST_TAG_BYTES, MOST_NODE_BYTES = 256, 128
MOST_NODES = 1_000
"""Nodes whose records one reader does not want."""
MOST_WRITE_KEY = 256
"""Characters of an idempotency key."""
MOST_PAGE = 1_000
"""Records in one answer to a reader."""
USUAL_PAGE_BYTES, MOST_PAGE_BYTES = 1 << 20, 8 << 20
MOST_WAIT_MS = 30_000
LEAST_LEASE_MS, MOST_LEASE_MS = 100, 86_400_000
SLICE = 1_000
"""How many records are removed at a time."""

Kind = Literal["log", "queue"]
Discard = Literal["old", "reject"]
DurabilityClass = Literal["memory", "disk", "fsync"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,254}")


class TopicConfig(msgspec.Struct, frozen=True):
    """The configuration of a topic. Times in milliseconds; 0 means no bound."""

    type: Kind = "log"
    ttl_ms: int = 0
    cap_records: int = 0
    cap_bytes: int = 0
    discard: Discard = "old"
    durability: DurabilityClass = "disk"
    priority: int | None = None
    auto_priority: bool = True
    auto_create: bool = True
    idempotency_window_ms: int = 120_000
    dedupe_node: bool = True
    lease_ms: int = 30_000
    claim_jitter_ms: int = 0
    max_deliveries: int = 0
    dead_letter: str | None = None
    leases_durable: bool = False


DEFAULT_CONFIG = TopicConfig()


class TopicPatch(msgspec.Struct, frozen=True):
    """A change of a config. `durable` is short for a `durability`; an explicit one wins."""

    type: Kind | UnsetType = UNSET
    ttl_ms: int | UnsetType = UNSET
    cap_records: int | UnsetType = UNSET
    cap_bytes: int | UnsetType = UNSET
    discard: Discard | UnsetType = UNSET
    durable: bool | UnsetType = UNSET
    durability: DurabilityClass | UnsetType = UNSET
    priority: int | None | UnsetType = UNSET
    auto_priority: bool | UnsetType = UNSET
    auto_create: bool | UnsetType = UNSET
    idempotency_window_ms: int | UnsetType = UNSET
    dedupe_node: bool | UnsetType = UNSET
    lease_ms: int | UnsetType = UNSET
    claim_jitter_ms: int | UnsetType = UNSET
    max_deliveries: int | UnsetType = UNSET
    dead_letter: str | None | UnsetType = UNSET
    leases_durable: bool | UnsetType = UNSET

    @property
    def queues_named(self) -> tuple[str, ...]:
        """The dead-letter topic that it sets, if any."""
        return (self.dead_letter,) if isinstance(self.dead_letter, str) else ()


NO_PATCH = TopicPatch()

_CLAMPED = {
    "priority": (-1000, 1000),
    "lease_ms": (LEAST_LEASE_MS, MOST_LEASE_MS),
    "claim_jitter_ms": (0, 5_000),
}
_COUNTED = ("ttl_ms", "cap_records", "cap_bytes", "idempotency_window_ms", "max_deliveries")


def check_topic(name: str) -> str:
    """Return the name of a topic, or raise `InvalidRequest`."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:300]!r} cannot be a topic: use up to 255 of the letters a-z and A-Z, digits"
            " and . _ : -, and begin with a letter or a digit"
        )
    return name


def configured(name: str, former: TopicConfig, patch: TopicPatch) -> TopicConfig:
    """A topic's config with a patch applied. Raises `InvalidRequest`."""
    given = {
        field: value
        for field in patch.__struct_fields__
        if (value := getattr(patch, field)) is not UNSET
    }
    durable = given.pop("durable", None)
    if durable is not None:
        given.setdefault("durability", "fsync" if durable else "disk")
    for field in _COUNTED:
        if not 0 <= given.get(field, 0) <= MAX_TIME:
            raise InvalidRequest(f"{field} must be between 0 and {MAX_TIME}")
    for field, (low, high) in _CLAMPED.items():
        if given.get(field) is not None:
            given[field] = min(max(given[field], low), high)
    target = given.get("dead_letter")
    if target is not None and check_topic(target) == name:
        raise InvalidRequest("dead_letter must be another topic than this one")
    return msgspec.structs.replace(former, **given)


class TopicState(msgspec.Struct, array_like=True):
    """A topic as it stands.

    `cap_floor` and `ttl_floor` are one more than the last record that was lost to a cap and to its
    age. `trim_at` is when its oldest record is to go, as far as that is known.
    """

    id: int
    name: str | None
    """None if the topic was deleted and its records are still being removed."""
    config: TopicConfig
    head_seq: int
    count: int
    bytes: int
    cap_floor: int
    ttl_floor: int
    last_at: int | None
    trim_at: int | None
    earliest_seq: int
    """The oldest record. If there is none, this is one more than the last number."""
    dead_lettered: int = 0
    """How many jobs of a queue have gone to its dead-letter topic."""
    ready: int = 0
    """How many jobs of a queue can be claimed. Only reads know this and the next number."""
    in_flight: int = 0

    @property
    def floor(self) -> int:
        """One more than the last record that a cap or its age has removed."""
        return max(self.cap_floor, self.ttl_floor)

    def is_still(self, id: int, head: int) -> bool:
        """True if it is the topic that had this id and this last number.

        An id is free again once a topic is deleted, and a new one of the same name may get it.
        """
        return self.id == id and self.head_seq >= head

    @property
    def is_over(self) -> bool:
        """True if it has more than its caps allow."""
        cap_records, cap_bytes = self.config.cap_records, self.config.cap_bytes
        return 0 < cap_records < self.count or 0 < cap_bytes < self.bytes


class NewRecord(msgspec.Struct, frozen=True):
    """A record to be appended; `data` and `meta` are JSON texts."""

    data: str
    node: str | None = None
    tag: str | None = None
    meta: str | None = None
    size: int = 0


class TopicRecord(msgspec.Struct, array_like=True, gc=False):
    """A record as it is read."""

    seq: int
    at: int
    node: str | None
    tag: str | None
    data: Raw
    meta: Raw | UnsetType = UNSET


class Loss(msgspec.Struct, frozen=True):
    """Records that a reader has missed.

    A cap or their age has removed them, or the topic was deleted and created again (`recreated`).
    """

    first_seq: int
    last_seq: int
    reason: Literal["cap", "ttl", "mixed", "recreated"]


class PageWanted(NamedTuple):
    """Records behind the number `after` that none of the `nodes` has written.

    A topic without `dedupe_node` shows what they have written too. The page ends after `limit`
    records, or `most_bytes` of them, but with one at least.
    """

    after: int
    limit: int
    nodes: Sequence[str]
    most_bytes: int


class TopicPage(NamedTuple):
    """A page of records, and the number up to which the reader has then seen everything."""

    records: list[TopicRecord]
    next_seq: int
    head_seq: int
    earliest_seq: int
    loss: Loss | None


class OldRecord(NamedTuple):
    """One of the oldest records of a topic."""

    seq: int
    at: int
    size: int


class Outworn(NamedTuple):
    """How many of the oldest records are to go, their bytes, and the last of each kind of loss."""

    records: int
    size: int
    last_by_age: int
    last_by_cap: int


def outworn_records(state: TopicState, oldest: Iterable[OldRecord], now: int) -> Outworn:
    """The oldest records that must go, by their age or by a cap. Records go in their order."""
    config = state.config
    count = size = by_age = by_cap = 0
    for record in oldest:
        is_over = (0 < config.cap_records < state.count - count) or (
            0 < config.cap_bytes < state.bytes - size
        )
        if config.ttl_ms and record.at + config.ttl_ms <= now:
            by_age = record.seq
        elif is_over:
            by_cap = record.seq
        else:
            break
        count += 1
        size += record.size
    return Outworn(count, size, by_age, by_cap)


def refuse_overflow(state: TopicState, records: int, size: int, largest: int) -> None:
    """Raise `TopicFull` if a topic cannot take this number of records and bytes."""
    config = state.config
    name = str(state.name)
    if 0 < config.cap_bytes < largest:
        raise TopicFull(name, f"a record of {largest} bytes is larger than its cap_bytes")
    if config.discard == "old":
        return
    if 0 < config.cap_records < state.count + records:
        raise TopicFull(name, f"it holds {state.count} of {config.cap_records} records")
    if 0 < config.cap_bytes < state.bytes + size:
        raise TopicFull(name, f"it holds {state.bytes} of {config.cap_bytes} bytes")


def check_label(field: str, text: str | None, most: int) -> None:
    """Raise `InvalidRequest` for a tag or a node that is too long or holds NUL."""
    if text is None:
        return
    if len(text) * 4 > most and len(text.encode()) > most:
        raise InvalidRequest(f"{field} must not have more than {most} bytes")
    if "\0" in text:
        raise InvalidRequest(f"{field} must not contain NUL")


def check_nodes(nodes: Sequence[str]) -> None:
    """Raise `InvalidRequest` for nodes whose records no reader can pass over."""
    if len(nodes) > MOST_NODES:
        raise InvalidRequest(
            f"node names {len(nodes)}, but at most {MOST_NODES} are allowed: pass over the others"
            " where you read"
        )
    for node in nodes:
        check_label("node", node, MOST_NODE_BYTES)


def new_record(data: str, node: str | None, tag: str | None, meta: str | None) -> NewRecord:
    """A checked record. Raises `InvalidRequest` or `RecordTooLarge`."""
    check_label("node", node, MOST_NODE_BYTES)
    check_label("tag", tag, MOST_TAG_BYTES)
    size = len(data) if data.isascii() else len(data.encode())
    if meta is not None:
        meta_size = len(meta.encode())
        if meta_size > MOST_META_BYTES:
            raise InvalidRequest(f"meta must not have more than {MOST_META_BYTES} bytes")
        size += meta_size
    if size > MOST_RECORD_BYTES:
        raise RecordTooLarge(size, MOST_RECORD_BYTES)
    return NewRecord(data, node, tag, meta, size + len(tag or "") + len(node or ""))


def check_batch_size(records: int) -> None:
    """Raise `InvalidRequest` for a write without records, or `BatchTooLarge`."""
    if not records:
        raise InvalidRequest("records must hold at least one record")
    if records > MOST_RECORDS:
        raise BatchTooLarge("records", records, MOST_RECORDS)


class TagMatch(NamedTuple):
    """The tags from `low` on and before `high`. If `high` is None, there is no upper bound."""

    low: str
    high: str | None


def tag_is(tag: str) -> TagMatch:
    """A match of exactly this tag."""
    return TagMatch(tag, tag + "\1")  # what lies between these would hold a NUL, as no tag does


def tag_begins(prefix: str) -> TagMatch:
    """A match of the tags with this prefix. Tags are ordered by code points."""
    stem = prefix.rstrip(chr(0x10FFFF))
    if not stem:
        return TagMatch(prefix, None)
    # Between these two lie the surrogates, which are no text.
    following = 0xE000 if ord(stem[-1]) == 0xD7FF else ord(stem[-1]) + 1
    return TagMatch(prefix, stem[:-1] + chr(following))


def loss_of(state: TopicState, after: int, first: int | None = None) -> Loss | None:
    """The records that a reader has missed after it had seen everything up to `after`.

    `first` is the next one that there is, if that may be another than the oldest one: a queue keeps
    what workers hold.
    """
    if after > state.head_seq:
        return Loss(1, state.earliest_seq - 1, "recreated")
    if after + 1 >= state.floor or first == after + 1:
        return None
    by_cap, by_age = after + 1 < state.cap_floor, after + 1 < state.ttl_floor
    reason: Literal["cap", "ttl", "mixed"] = (
        "mixed" if by_cap and by_age else "cap" if by_cap else "ttl"
    )
    last = state.earliest_seq - 1 if first is None else min(first, state.floor) - 1
    return Loss(after + 1, last, reason)


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
