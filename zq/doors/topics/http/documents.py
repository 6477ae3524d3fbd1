"""The documents of topics and records in the `/v0` dialect."""

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from zq.doors.topics.model import Loss, TopicPage, TopicRecord, TopicState
from zq.doors.topics.model_jobs import token
from zq.doors.topics.service_queues import ClaimedRecord
from zq.doors.topics.wire import config_document
from zq.model.ids import time_of


class ServerRecord(msgspec.Struct, omit_defaults=True, gc=False):
    """A record. The names of fields that the server sets begin with a dollar."""

    seq: int = field(name="$seq")
    at: int = field(name="$ts")
    data: Raw | UnsetType
    node: str | UnsetType = field(name="$node", default=UNSET)
    tag: str | UnsetType = field(name="$tag", default=UNSET)
    meta: Raw | UnsetType = UNSET


class Shown(NamedTuple):
    """The parts of records that a reader wants to see."""

    tags: bool = False
    meta: bool = True
    data: bool = True


def record(record: TopicRecord, shown: Shown) -> ServerRecord:
    """A record with the wanted parts."""
    return ServerRecord(
        record.seq,
        record.at,
        record.data if shown.data else UNSET,
        UNSET if record.node is None else record.node,
        UNSET if record.tag is None or not shown.tags else record.tag,
        record.meta if shown.meta else UNSET,
    )


class ClaimedDocument(msgspec.Struct, omit_defaults=True, gc=False):
    """A record that was leased to a node."""

    seq: int = field(name="$seq")
    lease_id: str
    deadline: int
    at: int = field(name="$ts")
    deliveries: int
    data: Raw
    tag: str | UnsetType = field(name="$tag", default=UNSET)
    node: str | UnsetType = field(name="$node", default=UNSET)
    meta: Raw | UnsetType = UNSET


def claimed(record: ClaimedRecord) -> ClaimedDocument:
    """A record as its worker gets it."""
    job, labels = record.job, record.labels
    meta = None if job.extras is None else job.extras.meta
    assert job.payload is not None
    return ClaimedDocument(
        labels.seq,
        token(job.key, job.deliveries),
        record.deadline,
        time_of(job.key),
        job.deliveries,
        Raw(job.payload.encode()),
        UNSET if labels.tag is None else labels.tag,
        UNSET if labels.node is None else labels.node,
        UNSET if meta is None else Raw(meta.encode()),
    )


class PushedDocument(ClaimedDocument, omit_defaults=True, kw_only=True):
    """A claimed record with its topic, as a stream sends it."""

    topic: str


def pushed(topic: str, record: ClaimedRecord) -> PushedDocument:
    """A record as a stream sends it to its worker."""
    return PushedDocument(topic=topic, **msgspec.structs.asdict(claimed(record)))


def page(topic: str, found: TopicPage, shown: Shown) -> dict[str, Any]:
    """The answer to a reader."""
    lag = found.head_seq - found.next_seq
    return {
        "topic": topic,
        "records": [record(each, shown) for each in found.records],
        "next_from_seq": found.next_seq,
        "head_seq": found.head_seq,
        "earliest_seq": found.earliest_seq,
        "caught_up": not lag,
        "tombstone": tombstone(found.loss, found),
        "lag": lag,
    }


def tombstone(loss: Loss | None, found: TopicPage) -> dict[str, Any] | None:
    """The records that a reader has missed."""
    if loss is None:
        return None
    return {
        "gap_from": loss.first_seq,
        "gap_to": loss.last_seq,
        "reason": loss.reason,
        "missed_estimate": max(loss.last_seq - loss.first_seq + 1, 0),
        "earliest_seq": found.earliest_seq,
        "head_seq": found.head_seq,
    }


def state(topic: TopicState, read_at: int | None) -> dict[str, Any]:
    """A topic as it stands."""
    document: dict[str, Any] = {
        "topic": topic.name,
        "type": topic.config.type,
        "head_seq": topic.head_seq,
        "earliest_seq": topic.earliest_seq,
        "next_seq": topic.head_seq + 1,
        "count": topic.count,
        "bytes": topic.bytes,
        "config": config_document(topic.config),
        "effective_priority": topic.config.priority or 0,
        "last_write_ts": topic.last_at,
        "last_read_ts": read_at,
    }
    if topic.config.type == "queue":
        document["queue"] = {
            "ready": topic.ready,
            "in_flight": topic.in_flight,
            "dead_lettered": topic.dead_lettered,
        }
    return document


def entry(topic: TopicState) -> dict[str, Any]:
    """A topic in a list."""
    return {
        "topic": topic.name,
        "head_seq": topic.head_seq,
        "earliest_seq": topic.earliest_seq,
        "count": topic.count,
        "bytes": topic.bytes,
        "durable": topic.config.durability == "fsync",
        "effective_priority": topic.config.priority or 0,
    }
