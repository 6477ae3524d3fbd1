"""The frames of streams: of takes, one for each job or notice, and of events; and heartbeats."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw

from zq.wire.documents import EventDocument, JobDocument, NoticeDocument
from zq.wire.packing import pack, repacked


class Framing(NamedTuple):
    """One of the formats of take streams. `frames` consumes its documents."""

    content_type: str
    frames: Callable[[Sequence[JobDocument]], bytes]
    notices: Callable[[Sequence[NoticeDocument]], bytes]
    heartbeat: bytes


_json = msgspec.json.Encoder()
_LENGTH = struct.Struct(">I")


def _event_stream(documents: Sequence[JobDocument | NoticeDocument]) -> bytes:
    return b"".join(b"data: " + _json.encode(document) + b"\n\n" for document in documents)


def _length_prefixed(documents: Sequence[JobDocument]) -> bytes:
    for document in documents:
        assert isinstance(document.payload, Raw)
        document.payload = Raw(repacked(document.payload))
        if isinstance(document.meta, Raw):
            document.meta = Raw(repacked(document.meta))
    return packed_frames(documents)


def packed_frames(documents: Sequence[JobDocument | NoticeDocument | EventDocument]) -> bytes:
    """The frames of documents in which MessagePack has taken the place of JSON."""
    frames: list[bytes] = []
    for document in documents:
        frame = pack(document)
        frames += (_LENGTH.pack(len(frame)), frame)
    return b"".join(frames)


NDJSON = Framing("application/x-ndjson", _json.encode_lines, _json.encode_lines, b"\n")
MSGPACK_STREAM = Framing(
    "application/vnd.zizq.msgpack-stream", _length_prefixed, packed_frames, bytes(4)
)
EVENT_STREAM = Framing("text/event-stream", _event_stream, _event_stream, b": heartbeat\n\n")


class EventFraming(NamedTuple):
    """One of the formats of event streams.

    `frames` consumes its documents. `heartbeat` gets the id of the last event before it.
    """

    content_type: str
    frames: Callable[[Sequence[EventDocument]], bytes]
    heartbeat: Callable[[str], bytes]


def _events(documents: Sequence[EventDocument]) -> bytes:
    frames: list[bytes] = []
    for document in documents:
        id, document.event_id = document.event_id, None
        head = f"id: {id}\nevent: {document.type}\ndata: ".encode()
        frames += (head, _json.encode(document), b"\n\n")
    return b"".join(frames)


def _place(last_id: str) -> bytes:
    # An id without data reaches no listener, but a client remembers it for its next connection.
    return f": heartbeat\nid: {last_id}\n\n".encode()


def _packed_events(documents: Sequence[EventDocument]) -> bytes:
    for document in documents:
        if isinstance(document.data, Raw):
            document.data = Raw(repacked(document.data))
    return packed_frames(documents)


EVENTS = EventFraming("text/event-stream", _events, _place)
EVENT_LINES = EventFraming("application/x-ndjson", _json.encode_lines, lambda _: b"\n")
EVENT_FRAMES = EventFraming(
    "application/vnd.zizq.msgpack-stream", _packed_events, lambda _: bytes(4)
)
EVENT_FRAMINGS = (EVENTS, EVENT_LINES, EVENT_FRAMES)
