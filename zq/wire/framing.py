"""How a take stream carries jobs: one frame a job, and a heartbeat that is no job."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from zq.wire.documents import JobDocument


class Framing(NamedTuple):
    """One of the three stream formats. `frames` uses its documents up."""

    content_type: str
    frames: Callable[[Sequence[JobDocument]], bytes]
    heartbeat: bytes


_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
_LENGTH = struct.Struct(">I")


def _event_stream(documents: Sequence[JobDocument]) -> bytes:
    return b"".join(b"data: " + _json.encode(document) + b"\n\n" for document in documents)


def _length_prefixed(documents: Sequence[JobDocument]) -> bytes:
    frames: list[bytes] = []
    for document in documents:
        assert isinstance(document.payload, msgspec.Raw)
        document.payload = _packed(document.payload)
        if isinstance(document.meta, msgspec.Raw):
            document.meta = _packed(document.meta)
        frame = _msgpack.encode(document)
        frames += (_LENGTH.pack(len(frame)), frame)
    return b"".join(frames)


def _packed(text: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(_msgpack.encode(msgspec.json.decode(text)))


NDJSON = Framing("application/x-ndjson", _json.encode_lines, b"\n")
MSGPACK_STREAM = Framing("application/vnd.zizq.msgpack-stream", _length_prefixed, bytes(4))
EVENT_STREAM = Framing("text/event-stream", _event_stream, b": heartbeat\n\n")
