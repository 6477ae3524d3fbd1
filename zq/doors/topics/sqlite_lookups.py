"""Reading topics: what stands in them for a reader at one moment."""

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from zq.doors.topics.model import (
    TopicPage,
    TopicRecord,
    TopicState,
    loss_of,
    tag_begins,
)
from zq.doors.topics.sqlite_jobs import read_jobs, stand
from zq.doors.topics.sqlite_quarantine import check_record
from zq.doors.topics.store import MOST_EXAMINED, PageWanted
from zq.model.checksums import ChecksumMismatch, record_checksum
from zq.model.reach import Reach
from zq.store.api import as_json
from zq.store.sqlite.connection import is_corrupt
from zq.store.sqlite.quarantine import UnreadableRows, is_unreadable
from zq.store.sqlite.queries import load

QUERIES = load(__name__)

_state = msgspec.json.Decoder(TopicState)


class _Row(msgspec.Struct, array_like=True, gc=False):
    """A record as the query `records` writes it."""

    seq: int
    at: int
    node: str | None
    tag: str | None
    checksum: int | None
    data: Raw
    meta: Raw | UnsetType = UNSET


_records = msgspec.json.Decoder(list[_Row])


def get_topic(connection: sqlite3.Connection, name: str, now: int) -> TopicState | None:
    """A topic as it stands for readers: what is past its age is gone."""
    row = connection.execute(QUERIES["topic"], {"name": name}).fetchone()
    return None if row is None else _standing(connection, _state.decode(row[0]), now)


def count_topics(connection: sqlite3.Connection) -> int:
    """How many topics there are."""
    count: int = connection.execute(QUERIES["count_topics"]).fetchone()[0]
    return count


def list_topics(
    connection: sqlite3.Connection, prefix: str, after: str, limit: int, reach: Reach, now: int
) -> list[TopicState]:
    """A page of topics by name, of those within reach."""
    found: list[TopicState] = []
    for bound in _within(prefix, reach):
        names = {"after": after, "limit": limit - len(found), **tag_begins(bound)._asdict()}
        rows = connection.execute(QUERIES["topics_page"], names)
        found += [_standing(connection, _state.decode(row), now) for (row,) in rows]
        if len(found) >= limit:
            break
    return found


def read_page(
    connection: sqlite3.Connection, name: str, wanted: PageWanted, now: int
) -> TopicPage | None:
    """A page of a topic's records."""
    state = get_topic(connection, name, now)
    if state is None:
        return None
    if state.config.type == "queue":
        return read_jobs(connection, state, wanted)
    loss = loss_of(state, wanted.after)
    is_new = loss is not None and loss.reason == "recreated"
    after = max(0 if is_new else wanted.after, state.earliest_seq - 1)
    upto = state.head_seq
    if after >= upto:
        return TopicPage([], upto, upto, state.earliest_seq, loss)
    place: dict[str, Any] = {"id": state.id, "after": after, "upto": upto}
    others = "1"
    if wanted.nodes and state.config.dedupe_node:
        others = QUERIES["others"]
        place["nodes"] = as_json(list(wanted.nodes))
        examined = connection.execute(QUERIES["examined"], {**place, "most": MOST_EXAMINED})
        row = examined.fetchone()
        place["upto"] = upto if row is None else row[0]
    place["upto"] = _end(connection, place, others, wanted)
    records = _read(connection, place, others)
    return TopicPage(records, place["upto"], upto, state.earliest_seq, loss)


def _end(
    connection: sqlite3.Connection, place: dict[str, Any], others: str, wanted: PageWanted
) -> int:
    """The last number that the page has examined."""
    bounds = {**place, "limit": wanted.limit}
    extent = QUERIES["extent"].replace("OTHERS", others)
    count, size, last = connection.execute(extent, bounds).fetchone()
    if size > wanted.most_bytes:
        fitting = QUERIES["fitting"].replace("OTHERS", others)
        end: int = connection.execute(fitting, {**bounds, "bytes": wanted.most_bytes}).fetchone()[0]
        if end < last:
            return end
    upto: int = last if count == wanted.limit else place["upto"]
    return upto


def _read(connection: sqlite3.Connection, place: dict[str, Any], others: str) -> list[TopicRecord]:
    try:
        sql = QUERIES["records"].replace("OTHERS", others)
        text = connection.execute(sql, place).fetchone()[0]
        return [] if text is None else [_sound(row) for row in _records.decode(f"[{text}]")]
    except Exception as error:
        if not is_unreadable(error) or (isinstance(error, sqlite3.Error) and is_corrupt(error)):
            raise
    bad = []
    sql = QUERIES["texts"].replace("OTHERS", others)
    for key, data, meta, stored in connection.execute(sql, place):
        try:
            check_record(data, meta, stored)
        except Exception as error:
            if not is_unreadable(error):
                raise
            bad.append(key)
    raise UnreadableRows("topic_records", bad)


def _sound(row: _Row) -> TopicRecord:
    """A record as it was stored. Raises `ChecksumMismatch`."""
    meta = None if row.meta is UNSET else row.meta
    if row.checksum is not None and record_checksum(row.data, meta) != row.checksum:
        raise ChecksumMismatch
    return TopicRecord(row.seq, row.at, row.node, row.tag, row.data, row.meta)


def _standing(connection: sqlite3.Connection, state: TopicState, now: int) -> TopicState:
    if state.config.type == "queue":
        return stand(connection, state)
    return _aged(connection, state, now)


def _aged(connection: sqlite3.Connection, state: TopicState, now: int) -> TopicState:
    """A topic without the records that are past their age and not yet removed."""
    ttl_ms = state.config.ttl_ms
    if not ttl_ms or state.earliest_seq > state.head_seq:
        return state
    first, last = first_younger(
        lambda seq: connection.execute(
            QUERIES["record_from"], {"id": state.id, "seq": seq}
        ).fetchone(),
        (state.earliest_seq, state.head_seq),
        now - ttl_ms,
    )
    if last is not None:
        state.ttl_floor = max(state.ttl_floor, last + 1)
        state.earliest_seq = first
    return state


def first_younger(
    record_from: Callable[[int], tuple[int, int] | None], extent: tuple[int, int], horizon: int
) -> tuple[int, int | None]:
    """The first record from after `horizon` on, one more than the last where there is none.

    And the last one of those before it that are there, None where there is none. Times never step
    back within a topic, so that a few looks find it, however many records there are.
    """
    low, last = extent
    lost: int | None = None
    high = last + 1
    while low < high:
        middle = (low + high) // 2
        found = record_from(middle)
        if found is None or found[1] > horizon:
            high = middle
        else:
            lost = found[0]
            low = found[0] + 1
    found = record_from(low)
    return (last + 1 if found is None else found[0]), lost


def _within(prefix: str, reach: Reach) -> list[str]:
    """The prefixes of names that both ask for, in their order."""
    bounds = []
    for own in reach.prefixes:
        if own.startswith(prefix):
            bounds.append(own)
        elif prefix.startswith(own):
            bounds.append(prefix)
    return sorted(bounds)
