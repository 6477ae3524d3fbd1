"""Numbered requests: a header, or a field of a bulk, names a producer and the first number."""

from functools import partial

from zq.features.producers.model import EnqueueInOrder, ProducerMark, check_writer
from zq.features.producers.wire import (
    HEADER,
    HEADER_TEXT,
    ProducerBody,
    mark_of_body,
    mark_of_header,
)
from zq.model.keys import Key
from zq.service.jobs import EnqueueMaker
from zq.terms import EnqueueTerm


def _by_header(text: str, key: Key | None) -> EnqueueMaker:
    return _numbered(mark_of_header(text), key)


def _by_field(body: ProducerBody, key: Key | None) -> EnqueueMaker:
    return _numbered(mark_of_body(body), key)


def _numbered(mark: ProducerMark, key: Key | None) -> EnqueueMaker:
    """Has jobs stored by their numbers, if the sender's key may write as the producer."""
    return partial(EnqueueInOrder, mark=check_writer(mark, key))


TERMS = (EnqueueTerm(HEADER, "producer", HEADER_TEXT, ProducerBody, _by_header, _by_field),)
