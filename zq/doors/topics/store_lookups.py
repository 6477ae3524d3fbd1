"""Reading topics: what stands in them for a reader at one moment."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from zq.doors.topics.model import (
    SEQ_BITS,
    PageWanted,
    TopicPage,
    TopicRecord,
    TopicState,
    loss_of,
    tag_begins,
)
from zq.doors.topics.store_jobs import MOST_EXAMINED, read_jobs, stand
from zq.model.checksums import ChecksumMismatch, record_checksum
from zq.model.reach import Reach
from zq.store.snapshot import Snapshot, flat

_state = msgspec.json.Decoder(TopicState)


def get_topic(snapshot: Snapshot, name: str, now: int) -> TopicState | None:
    """A topic as it stands for readers: what is past its age is gone."""
    text = snapshot.value("topic", name=name)
    return None if text is None else _standing(snapshot, _state.decode(text), now)


def count_topics(snapshot: Snapshot) -> int:
    """How many topics there are."""
    return int(snapshot.value("count_topics"))


def list_topics(
    snapshot: Snapshot, prefix: str, after: str, limit: int, reach: Reach, now: int
) -> list[TopicState]:
    """A page of topics by name, of those within reach."""
    found: list[TopicState] = []
    for bound in _within(prefix, reach):
        names = {"after": after, "limit": limit - len(found), **tag_begins(bound)._asdict()}
        texts = flat(snapshot.rows("topics_page", **names))
        found += [_standing(snapshot, _state.decode(text), now) for text in texts]
        if len(found) >= limit:
            break
    return found


def read_page(snapshot: Snapshot, name: str, wanted: PageWanted, now: int) -> TopicPage | None:
    """A page of a topic's records."""
    state = get_topic(snapshot, name, now)
    if state is None:
        return None
    if state.config.type == "queue":
        return read_jobs(snapshot, state, wanted)
    loss = loss_of(state, wanted.after)
    is_new = loss is not None and loss.reason == "recreated"
    after = max(0 if is_new else wanted.after, state.earliest_seq - 1)
    upto = state.head_seq
    if after >= upto:
        return TopicPage([], upto, upto, state.earliest_seq, loss)
    place: dict[str, Any] = {"id": state.id, "after": after, "upto": upto}
    others = "true"
    if wanted.nodes and state.config.dedupe_node:
        others = snapshot.text("others")
        place["nodes"] = list(wanted.nodes)
        examined = snapshot.value("examined", **place, most=MOST_EXAMINED)
        place["upto"] = upto if examined is None else examined
    words = {"OTHERS": others}
    place["upto"] = _end(snapshot, place, words, wanted)
    records = _read(snapshot, place, words)
    return TopicPage(records, place["upto"], upto, state.earliest_seq, loss)


def _end(
    snapshot: Snapshot, place: dict[str, Any], words: dict[str, str], wanted: PageWanted
) -> int:
    """The last number that the page has examined."""
    bounds = {**place, "limit": wanted.limit}
    ((count, size, last),) = snapshot.rows("extent", words, **bounds)
    if size > wanted.most_bytes:
        ((end,),) = snapshot.rows("fitting", words, **bounds, bytes=wanted.most_bytes)
        if end < last:
            return int(end)
    upto: int = last if count == wanted.limit else place["upto"]
    return upto


def _read(snapshot: Snapshot, place: dict[str, Any], words: dict[str, str]) -> list[TopicRecord]:
    """The records of a page, as they were stored."""
    records: list[TopicRecord] = []
    bad: list[int] = []
    for seq, at, node, tag, stored, data, meta in snapshot.rows("records", words, **place):
        try:
            _check(data, meta, stored)
            said = UNSET if meta is None else Raw(meta)
            records.append(TopicRecord(seq, at, node, tag, Raw(data), said))
        except (ChecksumMismatch, msgspec.MsgspecError):
            bad.append(place["id"] << SEQ_BITS | seq)
    if bad:
        raise snapshot.unreadable("topic_records", bad)
    return records


def _check(data: str | bytes, meta: str | bytes | None, stored: int | None) -> None:
    if stored is None:
        for text in (data, meta):
            if text is not None:
                msgspec.json.decode(text)
    elif record_checksum(data, meta) != stored:
        raise ChecksumMismatch


def _standing(snapshot: Snapshot, state: TopicState, now: int) -> TopicState:
    if state.config.type == "queue":
        return stand(snapshot, state)
    return _aged(snapshot, state, now)


def _aged(snapshot: Snapshot, state: TopicState, now: int) -> TopicState:
    """A topic without the records that are past their age and not yet removed."""
    ttl_ms = state.config.ttl_ms
    if not ttl_ms or state.earliest_seq > state.head_seq:
        return state
    first, last = first_younger(
        lambda seq: _first(snapshot.rows("record_from", id=state.id, seq=seq)),
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


def _first(rows: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    return rows[0] if rows else None


def _within(prefix: str, reach: Reach) -> list[str]:
    """The prefixes of names that both ask for, in their order."""
    bounds = []
    for own in reach.prefixes:
        if own.startswith(prefix):
            bounds.append(own)
        elif prefix.startswith(own):
            bounds.append(prefix)
    return sorted(bounds)
