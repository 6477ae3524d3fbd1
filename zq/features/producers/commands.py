"""The commands about producers."""

from typing import ClassVar

from zq.features.producers.model import ProducerMark
from zq.model.commands import Command, Enqueue


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
