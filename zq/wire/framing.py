"""How a take stream carries jobs: one frame a job, and a heartbeat that is no job."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from zq.wire.codecs import MSGPACK
from zq.wire.documents import JobDocument


class Framing(NamedTuple):
    """One of the three stream formats."""

    content_type: str
    frames: Callable[[Sequence[JobDocument]], bytes]
    heartbeat: bytes


_json = msgspec.json.Encoder()


def _event_stream(documents: Sequence[JobDocument]) -> bytes:
    return b"".join(b"data: " + _json.encode(document) + b"\n\n" for document in documents)


def _length_prefixed(documents: Sequence[JobDocument]) -> bytes:
    packed = [MSGPACK.encode(document) for document in documents]
    return b"".join(struct.pack(">I", len(frame)) + frame for frame in packed)


NDJSON = Framing("application/x-ndjson", _json.encode_lines, b"\n")
MSGPACK_STREAM = Framing("application/vnd.zizq.msgpack-stream", _length_prefixed, bytes(4))
EVENT_STREAM = Framing("text/event-stream", _event_stream, b": heartbeat\n\n")
