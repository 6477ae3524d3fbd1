"""Removes what leaves topics by itself: old records, records over a cap, and deleted topics."""

from collections.abc import Iterable, Sequence

import msgspec

from zq.doors.topics.model import MAX_SEQ, OldRecord, TopicState, outworn_records
from zq.tick.work import UnitOfWork

SLICE = 1_000
"""How many records are removed at a time."""

MOST_WRITES = 500
"""How many writes are forgotten in one tick."""

MOST_TRIMMED = 20
"""The most slices that one write removes to keep a topic within its caps. Later ticks remove the
rest."""

TOPICS = 4
"""How many topics are trimmed in one tick."""


def find_topics(work: UnitOfWork, names: Iterable[str]) -> dict[str, TopicState]:
    """The existing topics among these names."""
    rows = work.tx.table("read_topics", names=sorted(set(names)))
    found = msgspec.convert(rows, list[TopicState])
    return {str(state.name): state for state in found}


def write_topics(work: UnitOfWork, states: Sequence[TopicState]) -> None:
    """Store the present state of topics."""
    rows = [
        (
            *(state.id, state.head_seq, state.count, state.bytes),
            *(state.cap_floor, state.ttl_floor, state.last_at, state.trim_at),
            state.dead_lettered,
        )
        for state in states
    ]
    if rows:
        work.tx.write("write_topics", topics=rows)


def trim(work: UnitOfWork, state: TopicState, slices: int) -> None:
    """Remove the records that must go, and note when the next ones must. This changes `state`."""
    known = state.trim_at
    for _ in range(slices):
        rows = work.tx.table("oldest_records", id=state.id, limit=_about(state))
        oldest = [OldRecord(*row) for row in rows]
        gone = outworn_records(state, oldest, work.steady)
        if gone.records:
            last = oldest[gone.records - 1].seq
            work.tx.write("trim_records", id=state.id, upto=last)
            state.count -= gone.records
            state.bytes -= gone.size
            state.cap_floor = max(state.cap_floor, gone.last_by_cap + 1 if gone.last_by_cap else 0)
            state.ttl_floor = max(state.ttl_floor, gone.last_by_age + 1 if gone.last_by_age else 0)
        if gone.records < len(oldest):
            break
    left = oldest[gone.records :]
    ttl_ms = state.config.ttl_ms
    if left:
        state.trim_at = left[0].at + ttl_ms if ttl_ms else None
        state.earliest_seq = left[0].seq
    else:
        # More records may have to go than these slices hold.
        state.trim_at = work.steady if state.count else None
        first = work.tx.value("first_record", id=state.id) if state.count else None
        state.earliest_seq = state.head_seq + 1 if first is None else first
    work.retimed |= state.trim_at != known


def trim_topics(work: UnitOfWork) -> None:
    """Trim the topics that are due."""
    rows = work.tx.table("topics_to_trim", now=work.steady, limit=TOPICS)
    trimmed = []
    for state in msgspec.convert(rows, list[TopicState]):
        if state.name is None:
            _clear_away(work, state)
        else:
            trim(work, state, 1)
            trimmed.append(state)
    write_topics(work, trimmed)
    work.retimed = True


def forget_writes(work: UnitOfWork) -> None:
    """Forget writes that are no longer recognised."""
    work.tx.write("forget_writes", now=work.steady, limit=MOST_WRITES)


def _about(state: TopicState) -> int:
    """About how many records must go, at most a slice."""
    config = state.config
    if config.ttl_ms:
        return SLICE
    over = max(state.count - config.cap_records, 0) if config.cap_records else 0
    if config.cap_bytes and state.bytes > config.cap_bytes:
        over = max(over, (state.bytes - config.cap_bytes) * state.count // state.bytes)
    return min(over + 2, SLICE)


def _clear_away(work: UnitOfWork, state: TopicState) -> None:
    """Remove a slice of a deleted topic. The last slice removes the topic and frees its id."""
    _, _, keys = work.tx.rows_of("records_before", id=state.id, upto=MAX_SEQ, limit=SLICE)[0]
    removed = work.tx.run("delete_records", keys=keys)
    if removed == SLICE:
        return
    if all(
        work.tx.run(statement, id=state.id, limit=SLICE) < SLICE
        for statement in ("forget_writes_of", "forget_numbers_of")
    ):
        work.tx.write("forget_topic", id=state.id)
