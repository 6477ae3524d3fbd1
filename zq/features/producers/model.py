"""Producers: names with a memory. What one repeats is recognised for ever, at the cost of one row.

A producer numbers its jobs from 1, without gaps, and sends each number with its job until it is
answered. The server keeps the last number that it has stored, in the transaction of the jobs. So a
job is stored exactly once, however often and however late it is sent. Numbers belong to an epoch of
the producer: a text that it makes when it begins to count. A new epoch begins at 1, and takes over
only if it names the last number of the old one. The idea is that of idempotent producers in Kafka
(KIP-98), where an epoch fences off an earlier instance.
"""

import re
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from zq.model.commands import Command, Enqueue
from zq.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unprocessable
from zq.model.keys import Key


class ProducerNotFound(NotFound):
    """The server knows no producer of this name."""

    code = "producer_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"producer {name!r} is not known: it has stored nothing, or was deleted")


class SequenceGap(Conflict):
    """A request begins beyond the next number of its producer: the jobs between them are missing.

    So it is after a restore of the server, too: the producer sends again from `expected` on.
    """

    code = "sequence_gap"

    def __init__(self, name: str, seq: int, expected: int) -> None:
        super().__init__(
            f"producer {name!r} sends number {seq}, and {expected} is expected: send the jobs from"
            f" {expected} on"
        )
        self.details = {"expected": expected}


class ProducerFenced(Conflict):
    """The name belongs to another epoch: that of a later start, or of another device.

    `epoch` and `last` are those that are stored. `ended` is the last number of the epoch that was
    asked for, if the server remembers it.
    """

    code = "producer_fenced"

    def __init__(self, name: str, epoch: str, last: int, ended: int | None = None) -> None:
        super().__init__(
            f"producer {name!r} is in epoch {epoch!r}, whose last number is {last}: another epoch"
            f" takes over with after={epoch}:{last}, once nothing of the old one is under way"
        )
        known = {} if ended is None else {"ended": ended}
        self.details = {"epoch": epoch, "last": last, **known}


class ProducerOutOfReach(Forbidden):
    """The key may not write as this producer."""

    code = "producer_out_of_reach"

    def __init__(self, name: str, patterns: tuple[str, ...]) -> None:
        shown = ", ".join(patterns) or "none"
        super().__init__(f"this key may not write as producer {name!r}; its producers: {shown}")


class TooManyProducers(Unprocessable):
    """There are as many producers as the server remembers. Waiting does not help."""

    code = "too_many_producers"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the server remembers {most} producers already: delete those that are gone with"
            " DELETE /producers/{name}"
        )


MAX_PRODUCERS = 100_000
"""The most names that are remembered. Each is one row of about 100 bytes."""

MAX_ENDS = 100
"""The most earlier epochs of a name whose ends are remembered. Each is a row of about 60 bytes."""

MAX_SEQ = 2**53 - 1
"""The largest number: every client of JSON can write it."""

_NAME = re.compile(r"[A-Za-z0-9._:@/-]{1,128}")
_EPOCH = re.compile(r"[A-Za-z0-9._-]{1,64}")


class EpochEnd(msgspec.Struct, frozen=True):
    """The end of an earlier epoch, which a new one has to know to take over."""

    epoch: str
    last: int


class ProducerMark(msgspec.Struct, frozen=True):
    """A request's mark of its producer. `seq` is the number of its first job."""

    name: str
    epoch: str
    seq: int
    after: EpochEnd | None = None
    """Given by the first request of a new epoch, if the name was in another one."""


class Producer(msgspec.Struct, frozen=True, array_like=True):
    """A producer as it is stored. An epoch without jobs has 0 as its last number."""

    name: str
    epoch: str
    last: int
    at: int
    """When its last jobs were stored, in milliseconds of wall time."""
    first: int = 1
    """The number of the first job of the latest request whose key is known, as are those of the
    jobs behind it: keys of stored jobs, or of the owners of their unique keys or names."""
    key: int = 0
    """The key of that job. The keys of the following ones are `step` apart.

    A record of a topic has its own key with a minus, so that nobody takes it for that of a job.
    """
    step: int = 0

    def jobs_of(self, seqs: range) -> dict[int, int]:
        """The known keys of those of these numbers that came with the latest request, by number."""
        return self._latest(seqs) if self.key > 0 else {}

    def records_of(self, seqs: range) -> dict[int, int]:
        """Like `jobs_of`, for a latest request that has appended records to a topic."""
        latest = self._latest(seqs) if self.key < 0 else {}
        return {seq: -key for seq, key in latest.items()}

    def after(self, mark: ProducerMark, new: int, keys: Sequence[int], now: int) -> "Producer":
        """The producer once so many new jobs of a request are stored, the last ones by these keys.

        The keys are evenly spaced.
        """
        if not new:
            return self
        last = self.last + new
        step = keys[1] - keys[0] if len(keys) > 1 else 0
        return Producer(self.name, mark.epoch, last, now, last - len(keys) + 1, keys[0], step)

    def _latest(self, seqs: range) -> dict[int, int]:
        known = range(max(seqs.start, self.first), min(seqs.stop, self.last + 1))
        return {seq: self.key + (seq - self.first) * self.step for seq in known}


def entered(
    mark: ProducerMark, known: Producer | None, now: int, ended: int | None = None
) -> Producer:
    """The producer in the epoch of a request. Raises `ProducerFenced`.

    `ended` is the last number of that epoch, if it is known to be over.

    A name that is not known is in the epoch of its first request. If the request names the end of
    an earlier epoch, the server has forgotten that one, and the new one begins all the same.
    """
    if known is not None and known.epoch == mark.epoch:
        return known
    if known is not None and mark.after != EpochEnd(known.epoch, known.last):
        raise ProducerFenced(mark.name, known.epoch, known.last, ended)
    return Producer(mark.name, mark.epoch, 0, now)


def repeated(mark: ProducerMark, producer: Producer, jobs: int) -> int:
    """How many of a request's first jobs are stored already. Raises `SequenceGap`."""
    if mark.seq > producer.last + 1:
        raise SequenceGap(mark.name, mark.seq, producer.last + 1)
    return min(jobs, producer.last + 1 - mark.seq)


def check_mark(mark: ProducerMark) -> ProducerMark:
    """The mark, if it is valid. Raises `InvalidRequest`."""
    check_producer(mark.name)
    for epoch in (mark.epoch, *(() if mark.after is None else (mark.after.epoch,))):
        if not _EPOCH.fullmatch(epoch):
            raise InvalidRequest(
                f"{epoch!r} cannot be an epoch: use up to 64 letters, digits and . _ -"
            )
    if not 1 <= mark.seq <= MAX_SEQ:
        raise InvalidRequest(f"seq must be a whole number from 1 to {MAX_SEQ}, not {mark.seq}")
    if mark.after is not None and not 0 <= mark.after.last <= MAX_SEQ:
        raise InvalidRequest(f"the number in after must be from 0 to {MAX_SEQ}")
    return mark


def check_writer(mark: ProducerMark, key: Key | None) -> ProducerMark:
    """The mark, if its sender may write as the producer. Raises `ProducerOutOfReach`.

    A server without keys has None for the key.
    """
    if key is not None and not key.produces(mark.name):
        raise ProducerOutOfReach(mark.name, key.producer_patterns)
    return mark


def check_producer(name: str) -> None:
    """Raise `InvalidRequest` for a text that cannot name a producer."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{name[:140]!r} cannot name a producer: use up to 128 letters, digits and . _ : @ / -"
        )


class EnqueueInOrder(Enqueue, frozen=True, kw_only=True):
    """Store those jobs of a numbered request that are not stored yet, and their last number.

    Its errors are those of `Enqueue`, and `SequenceGap`, `ProducerFenced` or `TooManyProducers`.
    They mean that nothing was stored, and that the producer's number has not moved.
    """

    mark: ProducerMark


class ForgetProducer(Command[None], frozen=True):
    """Delete what is stored of a producer. The error is `ProducerNotFound`."""

    brings_more: ClassVar[bool] = False
    name: str
