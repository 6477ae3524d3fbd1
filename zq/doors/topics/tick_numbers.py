"""Jobs as the records of queue topics: they are stored like all others, and get numbers there."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.doors.topics.commands import ForgetNumbers, NumberJobs
from zq.doors.topics.errors import NotAQueue, TopicFull, TopicNotFound
from zq.doors.topics.model import MAX_SEQ, SEQ_BITS, SLICE, NewRecord, TopicState
from zq.doors.topics.model_jobs import new_job
from zq.doors.topics.tick_topics import find_topics, write_topics
from zq.model.commands import Enqueue
from zq.model.errors import PayloadTooLarge, ZqError
from zq.model.lifecycle import TERMINAL
from zq.store.api import Sliced
from zq.tick.finish import displace
from zq.tick.hooks import Jobs
from zq.tick.intake import enqueue_told
from zq.tick.work import UnitOfWork

AnyNumbering = NumberJobs | ForgetNumbers

LOOKED_AT = 100
"""The least numbers that are looked at, in two places, when others are given out."""

UNLABELLED = NewRecord("")


def number_jobs(work: UnitOfWork, commands: Sequence[AnyNumbering]) -> Sliced[list[object]]:
    """Give jobs their numbers in a queue, or drop the numbers of those that have ended."""
    replies: list[object] = []
    for command in commands:
        if isinstance(command, NumberJobs):
            replies.append(_number(work, command))
        else:
            work.tx.write("forget_ended", keys=list(command.keys))
            work.effects.promised |= command.durable
            replies.append(None)
        yield None
    return replies


def note_expired(work: UnitOfWork, jobs: Jobs, after: object) -> None:
    """Note that jobs were in their topics for too long. Readers will miss them."""
    work.tx.write("note_expired_numbers", keys=[job.key for job in jobs])


class RecordBatch(NamedTuple):
    """Records for a topic. In a queue they become jobs with the keys; a log needs none."""

    state: TopicState
    records: Sequence[NewRecord]
    keys: Sequence[int]


def admit_jobs(work: UnitOfWork, state: TopicState, count: int) -> None:
    """Raise `TopicFull` if a queue cannot take this number of records."""
    name, most = str(state.name), state.config.cap_records
    if state.head_seq + count >= MAX_SEQ:
        raise TopicFull(name, "it has given out all its numbers")
    if not most:
        return
    depth = _depth(work, name)
    over = _surplus(depth + count, state, count)
    if over and state.config.discard == "reject":
        raise TopicFull(name, f"it holds {depth} of {most} records")
    # A write that is larger than the queue makes way for itself.
    if over and len(_oldest(work, state, over)) + max(count - most, 0) < over:
        raise TopicFull(name, f"too few of its {depth} records can make room: workers hold them")


def make_room(work: UnitOfWork, state: TopicState, count: int) -> Sliced[None]:
    """Expire the oldest waiting records of a queue that has too many after new ones came.

    `state` is changed.
    """
    if not state.config.cap_records:
        return
    left = _surplus(_depth(work, str(state.name)), state, count)
    while left and (oldest := _oldest(work, state, min(left, SLICE))):
        keys = [key for _, key in oldest]
        # Without numbers they are not missed by readers as jobs that were there for too long.
        work.tx.write("forget_numbers", keys=keys)
        displace(work, work.tx.briefs("read_briefs", keys=keys))
        state.cap_floor = max(state.cap_floor, oldest[-1][0] + 1)
        left -= len(oldest)
        yield None


def store_jobs(
    work: UnitOfWork, batches: Sequence[RecordBatch], most_payload: int | None
) -> Sliced[None]:
    """Store records as jobs of queues, all or none.

    Raises `PayloadTooLarge`, if payloads have a limit, and what an enqueue answers.
    """
    keys = [key for batch in batches for key in batch.keys]
    jobs = [
        new_job(str(batch.state.name), record, batch.state.config.ttl_ms)
        for batch in batches
        for record in batch.records
    ]
    largest = max(job.payload_size for job in jobs)
    if most_payload is not None and largest > most_payload:
        raise PayloadTooLarge(largest, most_payload)
    size = sum([record.size for batch in batches for record in batch.records])
    new = Enqueue(keys=keys, jobs=jobs, now=work.now, size=size)
    (reply,) = yield from enqueue_told(work, [new])
    if isinstance(reply, ZqError):
        raise reply


def give_numbers(
    work: UnitOfWork, state: TopicState, keys: Sequence[int], records: Sequence[NewRecord]
) -> int:
    """Give jobs the next numbers of a queue. `state` is changed. Returns the first number."""
    first = state.head_seq + 1
    base = (state.id << SEQ_BITS) + first
    rows = [
        (base + index, key, record.node, record.tag)
        for index, (key, record) in enumerate(zip(keys, records, strict=True))
    ]
    work.tx.write("number_jobs", numbers=rows)
    # More are looked at than come, so that numbers of jobs that are gone do not gather. Jobs that
    # stay may have the lowest ones, so others are looked at too.
    for after in (0, work.random.randrange(first)):
        work.tx.write("forget_gone", id=state.id, after=after, limit=len(rows) + LOOKED_AT)
    state.head_seq += len(rows)
    return first


def _number(work: UnitOfWork, command: NumberJobs) -> dict[int, int] | TopicNotFound | NotAQueue:
    state = find_topics(work, [command.topic]).get(command.topic)
    if state is None:
        return TopicNotFound(command.topic)
    if state.config.type != "queue":
        return NotAQueue(command.topic)
    found = work.tx.table("read_numbers", keys=list(command.keys), id=state.id)
    numbers: dict[int, int] = dict(found)
    new = [key for key in command.keys if key not in numbers]
    first = give_numbers(work, state, new, [UNLABELLED] * len(new))
    write_topics(work, [state])
    return numbers | {key: first + index for index, key in enumerate(new)}


def _surplus(depth: int, state: TopicState, count: int) -> int:
    """The number of records that must go at a write. The cap may have been lowered before."""
    return min(max(depth - state.config.cap_records, 0), count + SLICE)


def _oldest(work: UnitOfWork, state: TopicState, limit: int) -> list[tuple[int, int]]:
    """The numbers and keys of the oldest records that wait."""
    rows = work.tx.table("oldest_waiting", id=state.id, queue=state.name, limit=limit)
    return [(seq, key) for seq, key in rows]


def _depth(work: UnitOfWork, queue: str) -> int:
    """How many unfinished jobs there are, those of this tick included."""
    stored = dict(work.tx.table("read_depths", queues=[queue])).get(queue, 0)
    moved = sum(
        n for (name, status), n in work.counts.items() if name == queue and status not in TERMINAL
    )
    return int(stored) + moved
