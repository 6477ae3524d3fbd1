"""New records: they are numbered and stored with the copies that routers make of them.

A record of a log is a row of its own. A record of a queue is a job.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from zq.doors.topics.commands import Append, Appended, DeleteRouter, LayAside, PutRouter, RouterPut
from zq.doors.topics.errors import (
    TooManyRouters,
    TooManyTopics,
    TopicFull,
    TopicIsQueue,
    TopicNotFound,
)
from zq.doors.topics.model import (
    DEFAULT_CONFIG,
    MAX_SEQ,
    MAX_TOPICS,
    MOST_RECORDS,
    SEQ_BITS,
    NewRecord,
    TopicState,
    refuse_overflow,
)
from zq.doors.topics.model_routers import (
    MAX_ROUTERS,
    RoutedWrite,
    Routing,
    TopicRouter,
    check_place,
)
from zq.doors.topics.tick_numbers import (
    RecordBatch,
    admit_jobs,
    give_numbers,
    make_room,
    store_jobs,
)
from zq.doors.topics.tick_topics import MOST_TRIMMED, create_topic, find_topics, trim, write_topics
from zq.features.producers.model import ProducerMark
from zq.features.producers.tick import ProducerBook, SeqVerdict
from zq.model.checksums import record_checksum
from zq.model.errors import ZqError
from zq.model.job import Reason
from zq.store.api import Sliced, as_json
from zq.tick.bury import bury
from zq.tick.fitting import ComingPayloads
from zq.tick.moves import remove
from zq.tick.slices import SLICE_ROWS
from zq.tick.work import UnitOfWork

AnyRouterChange = PutRouter | DeleteRouter


def change_routers(work: UnitOfWork, commands: Sequence[AnyRouterChange]) -> Sliced[list[object]]:
    """Change routers, one command after the other."""
    replies: list[object] = []
    for command in commands:
        try:
            if isinstance(command, PutRouter):
                replies.append(_put(work, command))
            else:
                replies.append(_delete(work, command))
        except ZqError as refusal:
            replies.append(refusal)
        yield None
    return replies


class Forwarding:
    """The routers behind some topics, and how much they have copied in this tick."""

    def __init__(self, work: UnitOfWork, topics: Iterable[str]) -> None:
        self._work = work
        routers = _found(work, "routers_behind", topics=sorted(set(topics)))
        self.dests = {router.config.dest for router in routers}
        """The topics that may get copies."""
        self._routing = Routing(routers)
        self._counts: Counter[str] = Counter()

    def copies(self, topic: str, records: Sequence[NewRecord]) -> Iterator[RoutedWrite]:
        """All copies of a write to a topic, in the order in which they are appended."""
        return self._routing.copies(topic, records)

    def count(self, copies: RoutedWrite) -> None:
        """Note that copies are appended."""
        self._counts[copies.router.name] += len(copies.records)

    def finish(self) -> None:
        """Write how much was copied."""
        if self._counts:
            self._work.tx.write("count_forwarded", counts=list(self._counts.items()))


def _put(work: UnitOfWork, command: PutRouter) -> RouterPut:
    name, config = command.name, command.config
    former = _named(work, name)
    if former is not None:
        _require(former, command)
    elif work.tx.value("count_routers") >= MAX_ROUTERS:
        raise TooManyRouters(MAX_ROUTERS)
    ends = (config.source, config.dest)
    check_place(name, config, _found(work, "routers_around", topics=ends))
    known = find_topics(work, ends)
    if config.dest not in known and not config.create_dest:
        raise TopicNotFound(config.dest)
    missing = [end for end in ends if end not in known]
    if missing and work.tx.value("count_topics") + len(missing) > MAX_TOPICS:
        raise TooManyTopics(MAX_TOPICS)
    for end in missing:
        create_topic(work, end, DEFAULT_CONFIG)
    ends_by_name = {"source": config.source, "dest": config.dest}
    work.tx.write("write_router", router=name, config=as_json(config), **ends_by_name)
    return RouterPut(created=former is None)


def _delete(work: UnitOfWork, command: DeleteRouter) -> bool:
    former = _named(work, command.name)
    if former is None:
        return False
    _require(former, command)
    work.tx.write("delete_router", router=command.name)
    return True


def _require(router: TopicRouter, command: AnyRouterChange) -> None:
    """Raise `QueueOutOfReach` where an end of the router is out of the sender's reach."""
    command.reach.require([router.config])


def _named(work: UnitOfWork, name: str) -> TopicRouter | None:
    return next(iter(_found(work, "routers_named", router=name)), None)


def _found(work: UnitOfWork, query: str, **parameters: object) -> list[TopicRouter]:
    return msgspec.convert(work.tx.table(query, **parameters), list[TopicRouter])


COLUMNS = "key, at, size, node, tag, meta, data, steady_at, checksum"

_Row = tuple[int, int, int, str | None, str | None, str | None, str, int | None, int]


def append(work: UnitOfWork, commands: Sequence[Append | LayAside]) -> Sliced[list[object]]:
    """Apply one command after the other, then write all records together."""
    writing = _Writing(work, commands)
    replies: list[object] = []
    for command in commands:
        if isinstance(command, LayAside):
            replies.append((yield from writing.lay_aside(command)))
        else:
            replies.append((yield from writing.append(command)))
    yield from work.tx.insert_large_by_slices("topic_records", COLUMNS, writing.rows)
    writing.finish()
    return replies


class _Writing:
    """The writes of one tick."""

    def __init__(self, work: UnitOfWork, commands: Sequence[Append | LayAside]) -> None:
        self.rows: list[_Row] = []
        self._work = work
        letters = [command.letter.topic for command in commands if isinstance(command, LayAside)]
        named = [*(command.topic for command in commands), *letters]
        self._forwarding = Forwarding(work, named)
        self._states = find_topics(work, [*named, *self._forwarding.dests])
        self._changed: dict[int, TopicState] = {}
        self._known = self._read_known(commands)
        self._book = ProducerBook(work, [mark for each in commands if (mark := _mark_of(each))])
        self._new: list[tuple[int, str, int, int, int]] = []

    def append(self, command: Append) -> Sliced[Appended | ZqError]:
        """Number the records of a command. Return what it did, or its error."""
        state = self._states.get(command.topic)
        created = None
        try:
            if state is not None and command.key is not None:
                known = self._known.get((state.id, command.key))
                if known is not None:
                    return Appended(*known, state.head_seq, deduped=True)
            verdict = self._judge(command)
            if verdict is not None and verdict.known == len(command.records):
                return _repeated(state, command, verdict)
            if state is None:
                state = created = self._create(command)
            done = yield from self._add_new(state, command, verdict)
        except ZqError as refusal:
            if created is not None:
                # A refused write leaves nothing behind.
                self._work.tx.write("forget_topic", id=created.id)
                del self._states[command.topic]
            return refusal
        done.created = created is not None
        return done

    def lay_aside(self, command: LayAside) -> Sliced[int | ZqError]:
        """Append what held jobs become in a dead-letter topic, and delete the jobs."""
        source = self._states.get(command.topic)
        if source is None:
            return TopicNotFound(command.topic)
        current = set(self._work.tx.keys("read_current", leases=command.leases))
        command = _only(command, current)
        unfit = yield from self._unfit(command)
        if unfit:
            dying = self._work.tx.jobs("read_jobs", keys=unfit)
            yield from bury(self._work, [(job, Reason.EXHAUSTED) for job in dying])
            command = _only(command, current.difference(unfit))
        if command.leases:
            done = yield from self.append(command.letter)
            if isinstance(done, ZqError):
                return done
            self._remove(source, command.leases)
        return len(current)

    def _unfit(self, command: LayAside) -> Sliced[list[int]]:
        """The jobs whose letters the topic does not take: they die where they are.

        They would be claimed again and again otherwise.
        """
        topic, unfit = command.letter.topic, list[int]()
        payloads = ComingPayloads(self._work, {topic})
        for key, record in zip(command.leases, command.letter.records, strict=True):
            if (yield from payloads.refusal(topic, record.data)) is not None:
                unfit.append(key)
        return unfit

    def _remove(self, source: TopicState, keys: Iterable[int]) -> None:
        """Delete jobs in flight that are letters of another topic now."""
        held = self._work.tx.briefs("read_held", keys=list(keys))
        remove(self._work, held)
        self._work.tx.write("forget_numbers", keys=[job.key for job in held])
        source.dead_lettered += len(held)
        self._changed[source.id] = source

    def finish(self) -> None:
        """Write the state of the topics, and remove the records over their caps."""
        for state in self._changed.values():
            if state.is_over:
                trim(self._work, state, MOST_TRIMMED)
        write_topics(self._work, list(self._changed.values()))
        self._book.write()
        self._forwarding.finish()
        if self._new:
            self._work.tx.write("note_writes", writes=self._new)
            self._work.retimed = True

    def _create(self, command: Append) -> TopicState:
        if command.create is None:
            raise TopicNotFound(command.topic)
        created = create_topic(self._work, command.topic, command.create)
        if isinstance(created, ZqError):
            raise created
        self._states[command.topic] = created
        return created

    def _judge(self, command: Append) -> SeqVerdict | None:
        """What the producer of a command has sent before, if it has one. Raises its errors."""
        if command.mark is None:
            return None
        verdict = self._book.judge(command.mark, len(command.records))
        if isinstance(verdict, ZqError):
            raise verdict
        return verdict

    def _add_new(
        self, state: TopicState, command: Append, verdict: SeqVerdict | None
    ) -> Sliced[Appended]:
        """Add those records that the producer has not sent before, and note its number."""
        if command.mark is None or verdict is None:
            return (yield from self._add(state, command))
        known = verdict.known
        new = replace(command, records=command.records[known:], keys=command.keys[known:])
        done = yield from self._add(state, new)
        base = (state.id << SEQ_BITS) + done.first_seq
        keys = range(-base, -base - len(new.records), -1)
        self._book.learn(verdict.producer.after(command.mark, len(keys), keys, self._work.now))
        done.duplicates = known
        return done

    def _add(self, state: TopicState, command: Append) -> Sliced[Appended]:
        if state.config.type == "queue" and not command.keys:
            raise TopicIsQueue(command.topic)
        copies = list(self._forwarding.copies(command.topic, command.records))
        batches = [RecordBatch(state, command.records, command.keys)]
        for each in copies:
            dest = self._states[each.router.config.dest]
            batches.append(RecordBatch(dest, each.records, self._keys(dest, len(each.records))))
        for topic, records in _by_topic(batches):
            self._admit(topic, records)
        jobs = [batch for batch in batches if batch.state.config.type == "queue"]
        yield from self._compare([batch for batch in jobs if batch is not batches[0]])
        if jobs:
            yield from store_jobs(self._work, jobs, command.most_payload)
        for batch in batches:
            self._store(batch)
            if len(batch.records) > SLICE_ROWS:
                yield None
        for batch in jobs:
            yield from make_room(self._work, batch.state, len(batch.records))
        for each in copies:
            self._forwarding.count(each)
        first = state.head_seq - len(command.records) + 1
        self._remember(state, command, first)
        return Appended(first, state.head_seq, state.head_seq)

    def _compare(self, copies: Sequence[RecordBatch]) -> Sliced[None]:
        """Raise an error if a copy may not come to its queue. A door knows its own topic alone."""
        payloads = ComingPayloads(self._work, {str(batch.state.name) for batch in copies})
        for batch in copies:
            for record in batch.records:
                why = yield from payloads.refusal(str(batch.state.name), record.data)
                if why is not None:
                    raise why

    def _keys(self, dest: TopicState, count: int) -> Sequence[int]:
        return self._work.new_keys(count) if dest.config.type == "queue" else ()

    def _remember(self, state: TopicState, command: Append, first: int) -> None:
        """Note the key by which the write that begins with `first` is recognised."""
        if command.key is not None:
            last = first + len(command.records) - 1
            until = self._work.steady + state.config.idempotency_window_ms
            self._known[state.id, command.key] = (first, last)
            self._new.append((state.id, command.key, first, last, until))

    def _admit(self, state: TopicState, records: Sequence[NewRecord]) -> None:
        """Raise `TopicFull` if a topic cannot take the records."""
        work = self._work
        if state.config.type == "queue":
            admit_jobs(work, state, len(records))
            return
        is_due = state.trim_at is not None and state.trim_at <= work.steady
        if is_due and state.config.discard == "reject":
            # What is past its age makes room.
            trim(work, state, MOST_TRIMMED)
            self._changed[state.id] = state
        sizes = [record.size for record in records]
        refuse_overflow(state, len(sizes), sum(sizes), max(sizes))
        if state.head_seq + len(records) >= MAX_SEQ:
            raise TopicFull(str(state.name), "it has given out all its numbers")

    def _store(self, batch: RecordBatch) -> None:
        """Number the records of a topic that has room, and store those of a log."""
        work, state = self._work, batch.state
        if state.config.type == "queue":
            give_numbers(work, state, batch.keys, batch.records)
            state.last_at = work.now
        else:
            self._store_in_log(state, batch.records)
        self._changed[state.id] = state
        work.effects.appended.add(str(state.name))
        work.effects.promised |= state.config.durability == "fsync"

    def _store_in_log(self, state: TopicState, records: Sequence[NewRecord]) -> None:
        now, steady = self._work.now, self._work.steady
        at = now if state.last_at is None else max(now, state.last_at)
        aged_from = None if at == steady else steady
        base = (state.id << SEQ_BITS) + state.head_seq + 1
        self.rows += [
            (
                *(base + index, at, record.size, record.node, record.tag, record.meta),
                *(record.data, aged_from, record_checksum(record.data, record.meta)),
            )
            for index, record in enumerate(records)
        ]
        state.head_seq += len(records)
        state.count += len(records)
        state.bytes += sum([record.size for record in records])
        state.last_at = at
        if state.config.ttl_ms and state.trim_at is None:
            state.trim_at = steady + state.config.ttl_ms
            self._work.retimed = True

    def _read_known(
        self, commands: Sequence[Append | LayAside]
    ) -> dict[tuple[int, str], tuple[int, int]]:
        """The numbers of the writes that are recognised, by topic and key.

        A write whose numbers no write of its topic can have is set aside, and comes anew.
        """
        asked = {
            (state.id, command.key): state.head_seq
            for command in commands
            if isinstance(command, Append)
            and command.key is not None
            and (state := self._states.get(command.topic)) is not None
        }
        if not asked:
            return {}
        rows = self._work.tx.table("read_writes", writes=list(asked), now=self._work.steady)
        found = {(topic, key): (first, last) for topic, key, first, last in rows}
        wrong = [
            write
            for write, (first, last) in found.items()
            if not 0 < first <= last <= asked[write] or last - first >= MOST_RECORDS
        ]
        if wrong:
            self._work.tx.set_aside("topic_writes", wrong)
        return {write: found[write] for write in found.keys() - wrong}


def _only(command: LayAside, kept: Container[int]) -> LayAside:
    """The part of a command that is about these jobs."""
    letter = command.letter
    pairs = zip(command.leases, letter.records, strict=True)
    records = [record for key, record in pairs if key in kept]
    size = sum([record.size for record in records])
    letter = replace(letter, records=records, keys=letter.keys[: len(records)], size=size)
    leases = {key: delivery for key, delivery in command.leases.items() if key in kept}
    return replace(command, leases=leases, letter=letter)


def _mark_of(command: Append | LayAside) -> ProducerMark | None:
    return command.mark if isinstance(command, Append) else None


def _repeated(state: TopicState | None, command: Append, verdict: SeqVerdict) -> Appended:
    """The answer to a write of which its producer has sent every record before.

    It has the numbers of these if the write was the producer's latest, and to this topic.
    """
    assert command.mark is not None
    seq, count, head = command.mark.seq, len(command.records), state.head_seq if state else 0
    first, last = head + 1, head
    keys = list(verdict.producer.records_of(range(seq, seq + count)).values())
    if state is not None and len(keys) == count and keys[0] >> SEQ_BITS == state.id:
        first, last = keys[0] & MAX_SEQ, keys[-1] & MAX_SEQ
    return Appended(first, last, head, deduped=True, duplicates=count)


def _by_topic(batches: Sequence[RecordBatch]) -> Iterator[tuple[TopicState, list[NewRecord]]]:
    """The records for each topic, with the copies."""
    found: dict[int, list[NewRecord]] = {}
    for batch in batches:
        found.setdefault(batch.state.id, []).extend(batch.records)
    states = {batch.state.id: batch.state for batch in batches}
    return ((states[id], records) for id, records in found.items())
