"""Changes to topics, deleted records, and what leaves by itself: for its age, or over a cap."""

from collections.abc import Iterable, Sequence

import msgspec

from zq.doors.topics.commands import (
    DeleteRecords,
    DeleteTopic,
    PutTopic,
    RecordsDeleted,
    TopicDeleted,
    TopicPut,
)
from zq.doors.topics.errors import (
    TooManyTopics,
    TopicIncompatible,
    TopicNotEmpty,
    TopicNotFound,
)
from zq.doors.topics.model import (
    DEFAULT_CONFIG,
    MAX_SEQ,
    MAX_TOPIC_ID,
    MAX_TOPICS,
    SLICE,
    OldRecord,
    TopicConfig,
    TopicState,
    configured,
    outworn_records,
)
from zq.model.errors import InvalidRequest
from zq.store.api import Sliced, as_json
from zq.tick.work import UnitOfWork

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


AnyTopicChange = PutTopic | DeleteTopic | DeleteRecords


def change_topics(work: UnitOfWork, commands: Sequence[AnyTopicChange]) -> Sliced[list[object]]:
    """Change topics, one command after the other."""
    replies: list[object] = []
    for command in commands:
        match command:
            case PutTopic():
                replies.append(_put(work, command))
            case DeleteTopic():
                replies.append(_delete(work, command))
            case DeleteRecords():
                replies.append(_delete_records(work, command))
        yield None
    return replies


def create_topic(work: UnitOfWork, name: str, config: TopicConfig) -> TopicState | TooManyTopics:
    """Create a topic that does not exist."""
    if work.tx.value("count_topics") >= MAX_TOPICS:
        return TooManyTopics(MAX_TOPICS)
    text = as_json(config)
    highest = work.tx.value("highest_topic")
    if highest < MAX_TOPIC_ID:
        id = work.tx.value("create_topic", topic=name, config=text)
    else:
        free = work.tx.value("free_topic_id")
        id = work.tx.value("create_topic_at", id=free, topic=name, config=text)
    return TopicState(id, name, config, 0, 0, 0, 0, 0, None, None, 1)


def clear_topics(work: UnitOfWork, settings: bool) -> None:
    """Delete every topic if all settings are deleted."""
    if not settings:
        return
    for table in ("topics", "topic_records", "topic_jobs", "topic_writes", "topic_routers"):
        work.tx.write(f"clear_{table}")


def _put(work: UnitOfWork, command: PutTopic) -> object:
    state = find_topics(work, [command.name]).get(command.name)
    former = DEFAULT_CONFIG if state is None else state.config
    try:
        config = configured(command.name, former, command.patch)
    except InvalidRequest as refusal:
        return refusal
    if state is None:
        created = create_topic(work, command.name, config)
        return created if isinstance(created, TooManyTopics) else TopicPut(created, created=True)
    if config.type != former.type:
        return TopicIncompatible(command.name, former.type)
    if config != former:
        work.tx.write("configure_topic", id=state.id, config=as_json(config))
        state.config = config
        if config.type == "log":
            # What is too old or too much by now goes a slice at a time.
            trim(work, state, 1)
            write_topics(work, [state])
    return TopicPut(state, created=False)


def _delete(work: UnitOfWork, command: DeleteTopic) -> object:
    state = find_topics(work, [command.name]).get(command.name)
    if state is None:
        return TopicDeleted(deleted=False)
    count = state.count if command.if_empty else 0
    if state.config.type == "queue":
        count = work.tx.value("has_jobs", id=state.id, queue=state.name)
    if count:
        return TopicNotEmpty(command.name, count)
    work.tx.write("drop_topic", id=state.id)
    routers = work.tx.rows_of("delete_routers_of", topic=command.name)
    work.effects.appended.add(command.name)
    work.effects.dropped.add(command.name)
    work.retimed = True
    return TopicDeleted(deleted=True, routers=sorted(name for (name,) in routers))


def _delete_records(work: UnitOfWork, command: DeleteRecords) -> object:
    state = find_topics(work, [command.topic]).get(command.topic)
    if state is None:
        return TopicNotFound(command.topic)
    upto = state.head_seq if command.upto is None else command.upto
    if command.id is not None and not state.is_still(command.id, upto):
        return TopicNotFound(command.topic)
    last = upto if command.before is None else min(upto, command.before - 1)
    where = {"id": state.id, "upto": max(last, 0), "limit": SLICE}
    if command.match is None:
        ((count, size, keys),) = work.tx.rows_of("records_before", **where)
    else:
        tags = command.match._asdict()
        ((count, size, keys),) = work.tx.rows_of("records_tagged", **where, **tags)
    if count:
        work.tx.write("delete_records", keys=keys)
        state.count -= count
        state.bytes -= size
        first = work.tx.value("first_record", id=state.id)
        state.earliest_seq = state.head_seq + 1 if first is None else first
        write_topics(work, [state])
    return RecordsDeleted(count, upto, count < SLICE, state)
