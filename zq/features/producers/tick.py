"""The tick's phases of producers: numbered requests, names that are forgotten, and their book."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from zq.features.producers.model import (
    MAX_ENDS,
    MAX_PRODUCERS,
    EnqueueInOrder,
    ForgetProducer,
    Producer,
    ProducerMark,
    ProducerNotFound,
    TooManyProducers,
    entered,
    repeated,
)
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.errors import ZqError
from zq.store.api import Sliced
from zq.tick.intake import enqueue
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork


class SeqVerdict(NamedTuple):
    """What a request means: its producer before it, and how many of its first jobs are stored."""

    producer: Producer
    known: int


class ProducerBook:
    """The producers of one phase: as they are stored, and as its requests leave them."""

    def __init__(self, work: UnitOfWork, marks: Sequence[ProducerMark]) -> None:
        self._work = work
        names = list({mark.name for mark in marks})
        rows = work.tx.table("read_producers", names=names) if names else ()
        self._producers = {row[0]: Producer(*row) for row in rows}
        self._changed: dict[str, Producer] = {}
        self._ends = self._read_ends(marks)
        self._over: list[tuple[str, str, int]] = []
        """The epochs that end in this phase: the name, the epoch and its last number."""
        self._room: int | None = None
        """How many names the server may still learn. It is counted for the first new one.

        A name whose request is refused later in the tick has taken its place, until the next tick.
        """

    def judge(self, mark: ProducerMark, jobs: int) -> SeqVerdict | ZqError:
        """The producer of a request, and how many of the request's first jobs it has stored."""
        known = self._producers.get(mark.name)
        try:
            ended = self._ends.get((mark.name, mark.epoch))
            producer = entered(mark, known, self._work.now, ended)
            stored = repeated(mark, producer, jobs)
            if known is None:
                self._take_room()
        except ZqError as error:
            return error
        return SeqVerdict(producer, stored)

    def learn(self, producer: Producer) -> None:
        """Note how a request has left its producer."""
        known = self._producers.get(producer.name)
        if known is not None and known.epoch != producer.epoch:
            self._over.append((known.name, known.epoch, known.last))
        self._producers[producer.name] = self._changed[producer.name] = producer

    def write(self) -> None:
        """Store the numbers."""
        if self._changed:
            self._work.tx.write("write_producers", producers=list(self._changed.values()))
        if self._over:
            names = list({name for name, *_ in self._over})
            self._work.tx.write("write_ends", ends=self._over)
            self._work.tx.write("drop_ends", names=names, kept=MAX_ENDS)

    def _read_ends(self, marks: Sequence[ProducerMark]) -> dict[tuple[str, str], int]:
        """The ends of epochs in which a request was sent, and its producer is no longer."""
        known = self._producers
        old = {
            (mark.name, mark.epoch)
            for mark in marks
            if mark.name in known and known[mark.name].epoch != mark.epoch
        }
        rows = self._work.tx.table("read_ends", epochs=list(old)) if old else ()
        return {(name, epoch): last for name, epoch, last in rows}

    def _take_room(self) -> None:
        if self._room is None:
            self._room = MAX_PRODUCERS - self._work.tx.value("count_producers")
        if self._room <= 0:
            raise TooManyProducers(MAX_PRODUCERS)
        self._room -= 1


T = TypeVar("T")


def enqueue_in_order(work: UnitOfWork, commands: Sequence[EnqueueInOrder]) -> Sliced[list[object]]:
    """Store the new jobs of numbered requests, one request after the other, with the numbers.

    The jobs of a request that is refused do not move the number: a later request of the same
    producer in this tick is then refused for the gap.
    """
    book = ProducerBook(work, [command.mark for command in commands])
    replies: list[object] = []
    for part in _parts(commands):
        replies += yield from _store(work, book, part)
    book.write()
    return replies


def _parts(commands: Sequence[EnqueueInOrder]) -> Iterator[list[EnqueueInOrder]]:
    """The commands in their order, cut where a producer comes again: its number must be known."""
    part: dict[str, EnqueueInOrder] = {}
    for command in commands:
        if command.mark.name in part:
            yield list(part.values())
            part = {}
        part[command.mark.name] = command
    yield list(part.values())


def _store(
    work: UnitOfWork, book: ProducerBook, commands: Sequence[EnqueueInOrder]
) -> Sliced[list[object]]:
    """Store the jobs of different producers together, which costs as much as plain jobs do."""
    judged = [book.judge(command.mark, len(command.jobs)) for command in commands]
    new: list[Enqueue] = []
    for command, verdict in zip(commands, judged, strict=True):
        if not isinstance(verdict, ZqError) and verdict.known < len(command.jobs):
            new.append(_without(command, verdict.known))
    stored = iter((yield from enqueue(work, new)) if new else ())
    replies: list[object] = []
    for command, verdict in zip(commands, judged, strict=True):
        if isinstance(verdict, ZqError):
            replies.append(verdict)
            continue
        producer, known = verdict
        reply: object = next(stored) if known < len(command.jobs) else EnqueueResult({})
        if isinstance(reply, EnqueueResult):
            fresh = command.keys[known:]
            keys = _keys_of(fresh, reply)
            book.learn(producer.after(command.mark, len(fresh), keys, work.now))
            if known:
                work.effects.tally.duplicates += known
                reply = _with_repeated(reply, command, producer, known)
        replies.append(reply)
    return replies


def forget_producers(work: UnitOfWork, commands: Sequence[ForgetProducer]) -> list[object]:
    """Delete producers by their names."""
    return [None if _forget(work, each.name) else ProducerNotFound(each.name) for each in commands]


def _forget(work: UnitOfWork, name: str) -> bool:
    work.tx.write("delete_ends", producer=name)
    return bool(work.tx.run("delete_producer", producer=name))


PHASES = (
    Phase(Stage.ENQUEUE, enqueue_in_order, (EnqueueInOrder,)),
    Phase(Stage.CHANGE, by_slices(forget_producers), (ForgetProducer,)),
)


def _without(command: EnqueueInOrder, known: int) -> Enqueue:
    """The command for those jobs that are not stored yet."""
    return Enqueue(
        keys=command.keys[known:],
        jobs=command.jobs[known:],
        now=command.now,
        size=command.size,
        reach=command.reach,
        defaults=command.defaults,
        registered_only=command.registered_only,
        sender=command.mark.name.partition("/")[0],
        over_depth=command.over_depth,
    )


def _keys_of(keys: Sequence[int], reply: EnqueueResult) -> Sequence[int]:
    """The keys that a reply names for the last ones of new jobs, as many as are evenly spaced."""
    joined = reply.joined
    if not joined:
        return keys
    named = [joined.get(index, key) for index, key in enumerate(keys)]
    start = len(named) - 1
    while start and named[start] - named[start - 1] == named[-1] - named[-2]:
        start -= 1
    return named[start:]


def _with_repeated(
    reply: EnqueueResult, command: EnqueueInOrder, producer: Producer, known: int
) -> EnqueueResult:
    """The reply about all jobs of a request, of which the first `known` were stored earlier."""
    seq = command.mark.seq
    keys = producer.jobs_of(range(seq, seq + known))
    return EnqueueResult(
        owners=_shifted(reply.owners, known),
        replaced={index + known for index in reply.replaced},
        gone=_shifted(reply.gone, known) | {number - seq: key for number, key in keys.items()},
        expiries=_shifted(reply.expiries, known),
        folded=_shifted(reply.folded, known),
        queues=_shifted(reply.queues, known),
        unnamed={index for index in range(known) if index + seq not in keys},
    )


def _shifted(by_index: dict[int, T], by: int) -> dict[int, T]:
    return {index + by: value for index, value in by_index.items()}
