"""Jobs as the records of queue topics. Pure rules.

A queue topic is the queue of its name. Whoever claims a record there holds a lease on the job, and
is known by the lease's claimant: the node. A token names one delivery of one job.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from zq.doors.topics.errors import BatchTooLarge
from zq.doors.topics.model import MOST_NODE_BYTES, NewRecord, TagMatch, TopicConfig, check_label
from zq.model.errors import InvalidRequest
from zq.model.job import Extras, JobRecord, NewJob
from zq.model.payload import one_line

TYPE = "topic-record"
"""The type of the jobs that came as records."""

MOST_SEQS = 1_000
"""Records that one request may settle."""

MOST_DELAY_MS = 86_400_000
SHORTEST_REST_MS, LONGEST_REST_MS = 1_000, 60_000

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class HeldRecord(NamedTuple):
    """A record that a node holds."""

    seq: int
    key: int
    delivery: int


class Labels(NamedTuple):
    """The number of a job in its topic, and what its record was labelled with."""

    seq: int
    node: str | None
    tag: str | None


class JobsWanted(NamedTuple):
    """Up to `limit` jobs with numbers up to `upto`, of some tags or of any."""

    upto: int
    match: TagMatch | None
    limit: int


class Selection(NamedTuple):
    """The records that a request is about, each perhaps with the token of its delivery."""

    node: str
    seqs: Sequence[int]
    tokens: Sequence[str | None] = ()


def new_job(queue: str, record: NewRecord, ttl_ms: int) -> NewJob:
    """The job that a record becomes. A `ttl_ms` of 0 leaves its time to the queue."""
    payload = one_line(record.data)
    return NewJob(
        queue,
        TYPE,
        payload,
        len(payload.encode()),
        extras=None if record.meta is None else Extras(meta=one_line(record.meta)),
        ttl_ms=ttl_ms or None,
    )


def token(key: int, delivery: int) -> str:
    """The name of one delivery of one job."""
    return f"lease_{key:016x}{delivery:08x}"


def chosen(wanted: Selection, held: Sequence[HeldRecord]) -> dict[int, HeldRecord]:
    """The held records that a request names by number: its tokens must be of their deliveries.

    Of a number that is named twice, the first place counts.
    """
    tokens = wanted.tokens or [None] * len(wanted.seqs)
    named = dict(zip(reversed(wanted.seqs), reversed(tokens), strict=True))
    return {
        each.seq: each for each in held if named[each.seq] in (None, token(each.key, each.delivery))
    }


def check_node(node: str) -> None:
    """Raise `InvalidRequest` for what cannot be the name of a worker."""
    if not node:
        raise InvalidRequest("node must not be empty: name the worker")
    check_label("node", node, MOST_NODE_BYTES)


def check_selection(wanted: Selection) -> None:
    """Raise `InvalidRequest` or `BatchTooLarge` for what cannot be meant."""
    check_node(wanted.node)
    if len(wanted.seqs) > MOST_SEQS:
        raise BatchTooLarge("seqs", len(wanted.seqs), MOST_SEQS)
    if wanted.tokens and len(wanted.tokens) != len(wanted.seqs):
        raise InvalidRequest(
            f"lease_ids has {len(wanted.tokens)} entries and seqs {len(wanted.seqs)}: send one for"
            " each, or none at all"
        )


def dealt(jobs: int, wanted: Sequence[int]) -> list[int]:
    """Share jobs out in rounds, one job a round to each that wants more. Return their numbers."""
    shares = [0] * len(wanted)
    while jobs > 0 and (hungry := [n for n, most in enumerate(wanted) if shares[n] < most]):
        rounds = max(jobs // len(hungry), 1)
        for n in hungry[:jobs]:
            share = min(rounds, wanted[n] - shares[n])
            shares[n] += share
            jobs -= share
    return shares


def is_worn_out(job: JobRecord, config: TopicConfig) -> bool:
    """True if a claimed job was delivered as often as it may be, before this time."""
    return config.dead_letter is not None and 0 < config.max_deliveries < job.deliveries


def rest_ms(job: JobRecord, config: TopicConfig) -> int:
    """How long a worn-out job rests when the dead-letter topic refuses it: each time twice as long.

    Others are claimed meanwhile. However many jobs are refused, claims come to those behind them.
    """
    doublings = min(job.deliveries - config.max_deliveries - 1, 6)
    return min(SHORTEST_REST_MS << doublings, LONGEST_REST_MS)


def dead_letter(topic: str, job: JobRecord, labels: Labels, most: int) -> NewRecord:
    """The record of the dead-letter topic for a job: its data, and three stamps in its meta."""
    meta = {} if job.extras is None or job.extras.meta is None else _object.decode(job.extras.meta)
    stamps = {
        "$dead_letter_from": topic,
        "$dead_letter_deliveries": str(most),
        "$dead_letter_src_seq": str(labels.seq),
    }
    text = _encode({**meta, **stamps}).decode()
    assert job.payload is not None
    size = sum(len(each.encode()) for each in (job.payload, text, labels.node, labels.tag) if each)
    return NewRecord(job.payload, labels.node, labels.tag, text, size)
