"""The tick's phase of changes to topics, and of deleted records."""

from collections.abc import Sequence

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
    MAX_TOPIC_ID,
    MAX_TOPICS,
    TopicConfig,
    TopicState,
    configured,
)
from zq.doors.topics.tick_trimming import SLICE, find_topics, trim, write_topics
from zq.model.errors import InvalidRequest
from zq.store.api import Sliced, as_json
from zq.tick.work import UnitOfWork

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
