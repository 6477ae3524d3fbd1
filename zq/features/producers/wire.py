"""Producers in requests and answers: the header `Zq-Producer`, the field of a bulk, documents."""

import msgspec

from zq.features.producers.model import EpochEnd, Producer, ProducerMark, check_mark
from zq.model.errors import InvalidRequest

HEADER = "Zq-Producer"
HEADER_TEXT = "The producer, and the number of the first job: `NAME; epoch=EPOCH; seq=NUMBER`."

_FORM = "NAME; epoch=EPOCH; seq=NUMBER, and after=EPOCH:NUMBER where an epoch takes over"


class ProducerBody(msgspec.Struct, omit_defaults=True):
    """The producer of a bulk, for clients that cannot set headers. `after` is `EPOCH:NUMBER`."""

    name: str
    epoch: str
    seq: int
    after: str | None = None


class ProducerDocument(msgspec.Struct):
    """A producer as clients see it. `last` is its last stored number, 0 if there is none."""

    name: str
    epoch: str
    last: int
    stored_at: int
    """When its last jobs were stored, in milliseconds since the epoch."""


class ProducersDocument(msgspec.Struct, omit_defaults=True):
    """A page of producers by name. `next` is the `from` of the following page."""

    producers: list[ProducerDocument]
    next: str | None = None


def mark_of_body(body: ProducerBody) -> ProducerMark:
    """The mark in a field of a bulk. Raises `InvalidRequest`."""
    after = None if body.after is None else _end(body.after)
    return check_mark(ProducerMark(body.name, body.epoch, body.seq, after))


def mark_of_header(text: str) -> ProducerMark:
    """The mark in the header. Raises `InvalidRequest`."""
    name, *rest = (part.strip() for part in text.split(";"))
    fields = dict(part.split("=", 1) for part in rest if "=" in part)
    is_whole = {"epoch", "seq"} <= fields.keys() <= {"epoch", "seq", "after"}
    if len(fields) != len(rest) or not is_whole:
        raise InvalidRequest(f"{HEADER}: {text[:200]!r} must be {_FORM}")
    after = _end(fields["after"]) if "after" in fields else None
    return check_mark(ProducerMark(name, fields["epoch"], _number(fields["seq"]), after))


def producer_document(producer: Producer) -> ProducerDocument:
    """A producer as clients see it."""
    return ProducerDocument(producer.name, producer.epoch, producer.last, producer.at)


def _end(text: str) -> EpochEnd:
    epoch, colon, last = text.rpartition(":")
    if not colon:
        raise InvalidRequest(
            f"after: {text[:100]!r} must be EPOCH:NUMBER, where the old epoch ended"
        )
    return EpochEnd(epoch, _number(last))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise InvalidRequest(f"{HEADER}: {text[:40]!r} is no whole number")
    return int(text)
