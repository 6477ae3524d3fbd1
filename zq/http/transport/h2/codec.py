"""The interface between a connection and its codec, and the codecs that there are.

A codec keeps the state of one connection and its streams: it reads frames and makes frames, and
does no I/O. The limits of a peer are kept outside, once for all codecs: frames.py and abuse.py.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from importlib import import_module
from typing import Protocol

from zq.http.transport.h2.frames import Frame

Field = tuple[bytes, bytes]

MAX_STREAMS = 200
"""Requests under way on one connection: what Zizq allows."""

STREAM_WINDOW = 256 * 1024
CONNECTION_WINDOW = 1024 * 1024
"""Bytes of bodies that may come before a handler has read any of them."""


class ErrorCode(IntEnum):
    """Why a stream or a connection ends (RFC 9113, 7): the codes that are used here."""

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
    """The calls that a codec makes while it reads. Streams are named by their numbers."""

    def request(self, number: int, fields: Sequence[Field], *, ended: bool) -> None:
        """A head is whole, its pseudo-headers first. `ended` says that no body follows."""

    def body(self, number: int, data: bytes, weight: int) -> None:
        """A part of a body. Its frame weighs `weight` bytes in the windows, padding included."""

    def trailers(self, number: int, fields: Sequence[Field]) -> None:
        """Headers behind a body; `ended` follows."""

    def ended(self, number: int) -> None:
        """The peer sends no more on a stream that had a body to come."""

    def reset(self, number: int, *, by_peer: bool) -> None:
        """A stream was reset: by its peer, or by the codec for what the peer has sent on it."""


class Http2Codec(Protocol):
    """One connection, seen from the server."""

    max_header_list: int
    """Bytes of all headers of a request, 32 for each besides. More ends the connection."""

    def start(self) -> None:
        """Queue the server's preface: its settings and the connection's window."""

    def receive(self, frames: Sequence[Frame]) -> None:
        """Read the bytes that came, and call `CodecEvents`. Raises BadPeer."""

    def acknowledge(self, number: int, size: int) -> None:
        """Let the peer send this many bytes of bodies again, on the stream and in all."""

    def window(self, number: int) -> int:
        """How many bytes `send_data` may take now; 0 for a stream that is gone."""

    @property
    def max_frame(self) -> int:
        """How much one frame to the peer may hold."""

    def send_head(self, number: int, fields: Sequence[Field], *, end: bool) -> None:
        """Queue the head of an answer, `:status` first."""

    def send_data(self, number: int, data: memoryview, *, end: bool) -> None:
        """Queue a part of its body, at most `window` and `max_frame`."""

    def reset(self, number: int, code: ErrorCode) -> None:
        """Queue a reset. This has no effect on a stream that is gone."""

    def goaway(self, code: ErrorCode, text: bytes = b"") -> None:
        """Queue a message that no more streams are taken. Open streams go on."""

    def queued(self) -> bytes:
        """The bytes to write. They are no longer queued after this."""


MakeCodec = Callable[[CodecEvents], Http2Codec]

_CODECS = {"h2": "H2Codec", "zttp": "ZttpCodec"}
"""By library: the class in the module that is named after it. A module is imported when chosen."""


class LibraryMissing(Exception):
    """The chosen library is not installed. The message tells how to install it."""


def codec_by(library: str) -> MakeCodec:
    """The factory of codecs, one for each connection. Raises LibraryMissing."""
    try:
        module = import_module(f"zq.http.transport.h2.{library}_codec")
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise LibraryMissing(
            f"--http2-engine {library}: the package {library} is not installed: run"
            f" pip install 'zq-queue[{library}]', or choose h2"
        ) from None
    make: MakeCodec = getattr(module, _CODECS[library])
    return make
