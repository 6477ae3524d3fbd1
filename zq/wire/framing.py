"""The frames of a take stream: one for each job or notice, and heartbeats."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw

from zq.wire.documents import JobDocument, NoticeDocument
from zq.wire.packing import pack, repacked


class Framing(NamedTuple):
    """One of the three stream formats. `frames` consumes its documents."""

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


def packed_frames(documents: Sequence[JobDocument | NoticeDocument]) -> bytes:
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
