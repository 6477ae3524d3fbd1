"""The interface between a connection and its codec, and the choice of a codec.

A codec keeps the state of one connection and its streams. It reads frames and makes frames, and
does no I/O. The limits of a peer hold for every codec: frames.py and abuse.py count them.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from zq.http.transport.h2.frames import Frame

Field = tuple[bytes, bytes]

MAX_STREAMS = 200
"""How many requests may be under way on one connection. Zizq has the same limit."""

STREAM_WINDOW = 256 * 1024
CONNECTION_WINDOW = 1024 * 1024
"""How many bytes of bodies may arrive before a handler has read any of them."""


class ErrorCode(IntEnum):
    """Why a stream or a connection ends: the codes of RFC 9113 (7) that zq sends."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    ENHANCE_YOUR_CALM = 0xB


class BadPeer(Exception):
    """The peer has broken the protocol. The GOAWAY that says so is queued."""


class CodecEvents(Protocol):
    """The calls that a codec makes while it reads. A number names a stream."""

    def request(self, number: int, fields: Sequence[Field], *, ended: bool) -> None:
        """A head is complete, with its pseudo-headers first. No body follows if it has `ended`."""

    def body(self, number: int, data: bytes, weight: int) -> None:
        """A part of a body. Its frame weighs `weight` bytes in the windows, padding included."""

    def trailers(self, number: int, fields: Sequence[Field]) -> None:
        """Headers after a body. `ended` is called next."""

    def ended(self, number: int) -> None:
        """The body of a request is complete."""

    def reset(self, number: int, *, by_peer: bool) -> None:
        """A stream was reset, by its peer or because of what the peer sent on it."""


class Http2Codec(Protocol):
    """The server's side of one connection."""

    max_header_list: int
    """How large the headers of a request may be: their bytes, and 32 more for each header. A larger
    request ends the connection."""

    def start(self) -> None:
        """Queue the server's preface: its settings and the connection's window."""

    def receive(self, frames: Sequence[Frame]) -> None:
        """Read frames that have arrived, and call `CodecEvents`. Raises BadPeer."""

    def acknowledge(self, number: int, size: int) -> None:
        """Let the peer send this many bytes of bodies again, on the stream and in all."""

    def window(self, number: int) -> int:
        """How many bytes `send_data` may take now; 0 for a stream that is gone."""

    @property
    def max_frame(self) -> int:
        """How many bytes one frame to the peer may hold."""

    def send_head(self, number: int, fields: Sequence[Field], *, end: bool) -> None:
        """Queue the head of an answer, `:status` first."""

    def send_data(self, number: int, data: memoryview, *, end: bool) -> None:
        """Queue a part of the answer's body, of at most `window` and `max_frame` bytes."""

    def reset(self, number: int, code: ErrorCode) -> None:
        """Queue a reset. This has no effect on a stream that is gone."""

    def goaway(self, code: ErrorCode, text: bytes = b"") -> None:
        """Queue a GOAWAY: the server takes no more streams. Open streams go on."""

    def queued(self) -> bytes:
        """Take the queued bytes, to write them."""


MakeCodec = Callable[[CodecEvents], Http2Codec]

_CODECS = {"h2": "H2Codec", "zttp": "ZttpCodec"}
"""The class of each library. Its module is named after the library."""


class LibraryMissing(Exception):
    """The chosen library is not installed. The message tells how to install it."""


@cache
def codec_by(library: str) -> MakeCodec:
    """The factory of codecs, one for each connection. Raises LibraryMissing.

    The library is imported for the first connection: many servers never see one.
    """
    if find_spec(library) is None:
        raise LibraryMissing(
            f"--http2-engine {library}: the package {library} is not installed: run"
            f" pip install 'zq-queue[{library}]', or choose h2"
        )

    def make(events: CodecEvents) -> Http2Codec:
        module = import_module(f"zq.http.transport.h2.{library}_codec")
        codec: MakeCodec = getattr(module, _CODECS[library])
        return codec(events)

    return make
