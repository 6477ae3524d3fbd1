"""Messages between jobs and what gRPC sends: payloads are bytes there, and JSON here."""

import base64
import binascii

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from zq.doors.queue_ti.http.documents import MessageDocument
from zq.doors.queue_ti.http.rpc.queue_pb2 import DequeueResponse, SubscribeResponse
from zq.model.ids import minted_at
from zq.model.job import JobRecord

MOST_FIELDS = 4_096
"""The most fields of a message, of which each entry of the metadata is one. Reading a message takes
the event loop about five microseconds a field."""


def has_too_many_fields(sent: bytes) -> bool:
    """True if a message has more than `MOST_FIELDS` fields. None of them is read.

    What is no message may count as one of few fields: its reader refuses it.
    https://protobuf.dev/programming-guides/encoding/
    """
    at, end, left = 0, len(sent), MOST_FIELDS
    while at < end:
        if not left:
            return True
        left -= 1
        tag, at = _number(sent, at)
        match tag & 7:
            case 0:
                _, at = _number(sent, at)
            case 1:
                at += 8
            case 2:
                size, at = _number(sent, at)
                at += size
            case 5:
                at += 4
    return False


def _number(sent: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at a place, and the place behind it."""
    number = shift = 0
    while at < len(sent):
        byte = sent[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or shift > 63:
            break
    return number, at


class _Bytes(msgspec.Struct, forbid_unknown_fields=True):
    """A payload that stands for bytes which are no text."""

    base64: str


_bytes = msgspec.json.Decoder(_Bytes)


def stored_payload(sent: bytes) -> bytes:
    """The JSON of a payload: a text or, where the bytes are none, an object with their base 64."""
    try:
        return msgspec.json.encode(sent.decode())
    except UnicodeDecodeError:
        return msgspec.json.encode(_Bytes(base64.b64encode(sent).decode()))


def sent_payload(stored: str) -> bytes:
    """The bytes of a payload. JSON that is no text, of a native job, is sent as it is."""
    if stored.startswith('"'):
        return msgspec.json.decode(stored, type=str).encode()
    try:
        # An object of another kind is refused at its first field, before values are made of it.
        return base64.b64decode(_bytes.decode(stored).base64, validate=True)
    except (msgspec.ValidationError, binascii.Error):
        return stored.encode()


def dequeued(job: JobRecord, document: MessageDocument) -> DequeueResponse:
    """A message as the answer of a dequeue."""
    return DequeueResponse(
        id=document.id,
        topic=document.topic,
        payload=sent_payload(job.payload or "null"),
        metadata=document.metadata or {},
        created_at=_created_at(job),
        retry_count=document.retry_count,
        max_retries=min(document.max_retries, _INT32),
        key=job.unique_key,
    )


def subscribed(job: JobRecord, document: MessageDocument) -> SubscribeResponse:
    """A message as a part of a stream."""
    return SubscribeResponse(
        id=document.id,
        topic=document.topic,
        payload=sent_payload(job.payload or "null"),
        metadata=document.metadata or {},
        created_at=_created_at(job),
        retry_count=document.retry_count,
    )


_INT32 = 2**31 - 1


def _created_at(job: JobRecord) -> Timestamp:
    seconds, milliseconds = divmod(minted_at(job.key), 1000)
    return Timestamp(seconds=seconds, nanos=milliseconds * 1_000_000)
