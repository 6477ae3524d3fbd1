"""Events as documents, and the framings of event streams."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType


class EventDocument(msgspec.Struct, omit_defaults=True, gc=False):
    """An event of a job, or a gap: a place where events are missing.

    `event_id` is left out of server-sent events, which have a field of their own for it. A gap has
    no job; `missed` is the number of missing events, if it is known.
    """

    type: str
    ts: int
    id: str | None = None
    queue: str | None = None
    key: str | None = None
    attempt: int | None = None
    data: Raw | UnsetType = UNSET
    missed: int | None = None
    event_id: str | None = None


class EventFraming(NamedTuple):
    """One of the stream formats.

    `frames` consumes its documents. `heartbeat` gets the id of the last event before it.
    """

    content_type: str
    frames: Callable[[Sequence[EventDocument]], bytes]
    heartbeat: Callable[[str], bytes]


_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()
_LENGTH = struct.Struct(">I")


def _event_stream(documents: Sequence[EventDocument]) -> bytes:
    frames: list[bytes] = []
    for document in documents:
        id, document.event_id = document.event_id, None
        head = f"id: {id}\nevent: {document.type}\ndata: ".encode()
        frames += (head, _json.encode(document), b"\n\n")
    return b"".join(frames)


def _place(last_id: str) -> bytes:
    # An id without data reaches no listener, but a client remembers it for its next connection.
    return f": heartbeat\nid: {last_id}\n\n".encode()


def _length_prefixed(documents: Sequence[EventDocument]) -> bytes:
    frames: list[bytes] = []
    for document in documents:
        if isinstance(document.data, Raw):
            document.data = Raw(_msgpack.encode(msgspec.json.decode(document.data)))
        frame = _msgpack.encode(document)
        frames += (_LENGTH.pack(len(frame)), frame)
    return b"".join(frames)


EVENTS = EventFraming("text/event-stream", _event_stream, _place)
EVENT_LINES = EventFraming("application/x-ndjson", _json.encode_lines, lambda _: b"\n")
EVENT_FRAMES = EventFraming(
    "application/vnd.zizq.msgpack-stream", _length_prefixed, lambda _: bytes(4)
)
EVENT_FRAMINGS = (EVENTS, EVENT_LINES, EVENT_FRAMES)
