"""The tick's phases of producers: numbered requests, and names that are forgotten."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from zq.features.producers.commands import EnqueueInOrder, ForgetProducer
from zq.features.producers.errors import ProducerNotFound
from zq.features.producers.model import Producer
from zq.features.producers.tick_book import ProducerBook
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
            book.learn(producer.after(command.mark, command.keys[known:], work.now))
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
