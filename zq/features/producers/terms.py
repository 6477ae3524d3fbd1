"""Numbered requests: a header, or a field of a bulk, names a producer and the first number."""

from functools import partial

from zq.features.producers.commands import EnqueueInOrder
from zq.features.producers.errors import ProducerOutOfReach
from zq.features.producers.model import ProducerMark
from zq.features.producers.wire import HEADER, ProducerBody, mark_of_body, mark_of_header
from zq.model.keys import Key
from zq.service.jobs import EnqueueMaker
from zq.terms import EnqueueTerm


def _by_header(text: str, key: Key | None) -> EnqueueMaker:
    return _numbered(mark_of_header(text), key)


def _by_field(body: ProducerBody, key: Key | None) -> EnqueueMaker:
    return _numbered(mark_of_body(body), key)


def _numbered(mark: ProducerMark, key: Key | None) -> EnqueueMaker:
    """Has jobs stored by their numbers, if the sender's key may write as the producer."""
    if key is not None and not key.produces(mark.name):
        raise ProducerOutOfReach(mark.name, key.producer_patterns)
    return partial(EnqueueInOrder, mark=mark)


_TEXT = "The producer, and the number of the first job: `NAME; epoch=EPOCH; seq=NUMBER`."

TERMS = (EnqueueTerm(HEADER, "producer", _TEXT, ProducerBody, _by_header, _by_field),)
