"""The producers of a tick, for the phases that store numbered jobs and numbered records."""

from collections.abc import Sequence
from typing import NamedTuple

from zq.features.producers.errors import TooManyProducers
from zq.features.producers.model import (
    MAX_ENDS,
    MAX_PRODUCERS,
    Producer,
    ProducerMark,
    entered,
    repeated,
)
from zq.model.errors import ZqError
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
