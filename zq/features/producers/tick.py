"""The tick's phases of producers: numbered requests, and names that are forgotten."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from zq.features.producers.commands import EnqueueInOrder, ForgetProducer
from zq.features.producers.errors import ProducerNotFound, TooManyProducers
from zq.features.producers.model import MAX_PRODUCERS, Producer, ProducerMark, entered, repeated
from zq.model.commands import Enqueue, EnqueueResult
from zq.model.errors import ZqError
from zq.store.api import Sliced
from zq.tick.intake import enqueue
from zq.tick.phases import Phase, Stage
from zq.tick.slices import by_slices
from zq.tick.work import UnitOfWork

T = TypeVar("T")


def enqueue_in_order(work: UnitOfWork, commands: Sequence[EnqueueInOrder]) -> Sliced[list[object]]:
    """Store the new jobs of numbered requests, one request after the other, with the numbers.

    The jobs of a request that is refused do not move the number: a later request of the same
    producer in this tick is then refused for the gap.
    """
    book = _Book(work, commands)
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
    work: UnitOfWork, book: "_Book", commands: Sequence[EnqueueInOrder]
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
            book.learn(producer.after(command.mark, command.keys[known:], work.now))
            if known:
                work.effects.tally.duplicates += known
                reply = _with_repeated(reply, command, producer, known)
        replies.append(reply)
    return replies


def forget_producers(work: UnitOfWork, commands: Sequence[ForgetProducer]) -> list[object]:
    """Delete producers by their names."""
    return [
        None if work.tx.run("delete_producer", producer=each.name) else ProducerNotFound(each.name)
        for each in commands
    ]


PHASES = (
    Phase(Stage.ENQUEUE, enqueue_in_order, (EnqueueInOrder,)),
    Phase(Stage.CHANGE, by_slices(forget_producers), (ForgetProducer,)),
)


class _Book:
    """The producers of one tick: as they are stored, and as its requests leave them."""

    def __init__(self, work: UnitOfWork, commands: Sequence[EnqueueInOrder]) -> None:
        self._work = work
        names = {command.mark.name for command in commands}
        rows = work.tx.table("read_producers", names=list(names))
        self._producers = {row[0]: Producer(*row) for row in rows}
        self._changed: dict[str, Producer] = {}
        self._room: int | None = None
        """How many names the server may still learn. It is counted for the first new one.

        A name whose request is refused later in the tick has taken its place, until the next tick.
        """

    def judge(self, mark: ProducerMark, jobs: int) -> "_Verdict | ZqError":
        """The producer of a request, and how many of the request's first jobs it has stored."""
        known = self._producers.get(mark.name)
        try:
            producer = entered(mark, known, self._work.now)
            stored = repeated(mark, producer, jobs)
            if known is None:
                self._take_room()
        except ZqError as error:
            return error
        return _Verdict(producer, stored)

    def learn(self, producer: Producer) -> None:
        """Note how a request has left its producer."""
        self._producers[producer.name] = self._changed[producer.name] = producer

    def write(self) -> None:
        """Store the numbers."""
        if self._changed:
            self._work.tx.run("write_producers", producers=list(self._changed.values()))

    def _take_room(self) -> None:
        if self._room is None:
            self._room = MAX_PRODUCERS - self._work.tx.value("count_producers")
        if self._room <= 0:
            raise TooManyProducers(MAX_PRODUCERS)
        self._room -= 1


class _Verdict(NamedTuple):
    """What a request means: its producer before it, and how many of its jobs are stored."""

    producer: Producer
    known: int


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
        over_depth=command.over_depth,
    )


def _with_repeated(
    reply: EnqueueResult, command: EnqueueInOrder, producer: Producer, known: int
) -> EnqueueResult:
    """The reply about all jobs of a request, of which the first `known` were stored earlier."""
    seq = command.mark.seq
    keys = producer.keys_of(range(seq, seq + known))
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
