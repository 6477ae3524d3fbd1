"""Messages between jobs and what gRPC sends: payloads are bytes there, and JSON here."""

import base64
import binascii

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from zq.doors.queue_ti.http.documents import MessageDocument
from zq.doors.queue_ti.http.rpc.queue_pb2 import DequeueResponse, SubscribeResponse
from zq.model.ids import minted_at
from zq.model.job import JobRecord


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
