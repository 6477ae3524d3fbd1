"""The frames of a take stream: one for each job or notice, and heartbeats."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from zq.wire.documents import JobDocument, NoticeDocument


class Framing(NamedTuple):
    """One of the three stream formats. `frames` consumes its documents."""

    content_type: str
    frames: Callable[[Sequence[JobDocument]], bytes]
    notices: Callable[[Sequence[NoticeDocument]], bytes]
    heartbeat: bytes


_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
_LENGTH = struct.Struct(">I")


def _event_stream(documents: Sequence[JobDocument | NoticeDocument]) -> bytes:
    return b"".join(b"data: " + _json.encode(document) + b"\n\n" for document in documents)


def _length_prefixed(documents: Sequence[JobDocument]) -> bytes:
    for document in documents:
        assert isinstance(document.payload, msgspec.Raw)
        document.payload = _repacked(document.payload)
        if isinstance(document.meta, msgspec.Raw):
            document.meta = _repacked(document.meta)
    return _packed(documents)


def _repacked(text: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(_msgpack.encode(msgspec.json.decode(text)))


def _packed(documents: Sequence[JobDocument | NoticeDocument]) -> bytes:
    frames: list[bytes] = []
    for document in documents:
        frame = _msgpack.encode(document)
        frames += (_LENGTH.pack(len(frame)), frame)
    return b"".join(frames)


NDJSON = Framing("application/x-ndjson", _json.encode_lines, _json.encode_lines, b"\n")
MSGPACK_STREAM = Framing("application/vnd.zizq.msgpack-stream", _length_prefixed, _packed, bytes(4))
EVENT_STREAM = Framing("text/event-stream", _event_stream, _event_stream, b": heartbeat\n\n")
