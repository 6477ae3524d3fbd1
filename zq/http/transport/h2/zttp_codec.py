"""The codec of the zttp library. Its native core reads heads, keeps streams and makes frames.

A core allows a connection 4,096 requests in all, 256 resets and 128 streams at once. These limits
cannot be raised. So a connection uses one core (`_Core`) after the other: a worn core goes on with
its open streams, and a fresh one takes the new streams. The heads must then mean the same to every
core, and therefore the peer is told to keep no table of headers. The first core serves alone until
the peer has agreed.

The cores know nothing of each other. The window of the connection, the settings of the peer and its
streams are therefore kept here. A core opens windows as it reads, and that is too early. So the
windows are kept here too, and what a core says about them is dropped.
"""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

import zttp

from zq.http.transport.h2.codec import (
    CONNECTION_WINDOW,
    MAX_STREAMS,
    STREAM_WINDOW,
    BadPeer,
    CodecEvents,
    ErrorCode,
    Field,
)
from zq.http.transport.h2.frames import HEAD_SIZE, PREFACE, Flag, Frame, FrameKind, make, whole

MOST_REQUESTS = 4096
MOST_AT_ONCE = 128
"""A core takes no more than this."""
MOST_RESETS = 64
"""After this many resets a core takes no new streams. It permits 256 resets, and each of its open
streams may still be reset."""

DEFAULT_WINDOW = 2**16 - 1
LARGEST_WINDOW = 2**31 - 1
LOW_WINDOW = 2**30

_SETTING = Struct(">HI")
_CODES = Struct(">II")  # the last stream and the error code of a GOAWAY
_SIZE = Struct(">I")

_DATA, _HEADERS, _PRIORITY, _RST_STREAM, _SETTINGS, _GOAWAY, _WINDOW_UPDATE = (
    int(kind)
    for kind in (
        FrameKind.DATA,
        FrameKind.HEADERS,
        FrameKind.PRIORITY,
        FrameKind.RST_STREAM,
        FrameKind.SETTINGS,
        FrameKind.GOAWAY,
        FrameKind.WINDOW_UPDATE,
    )
)
_ACK, _END_HEADERS = int(Flag.ACK), int(Flag.END_HEADERS)
_NEED_DATA = zttp.NEED_DATA
_SETTING_CODES = zttp.H2Settings


class _Core:
    """One of zttp's connections, with counts of what it has done."""

    __slots__ = ("connection", "live", "requests", "resets")

    def __init__(self, peer_settings: dict[int, int]) -> None:
        self.connection = zttp.Connection(zttp.SERVER, zttp.HTTP2)
        self.live = 0
        self.requests = 0
        self.resets = 0
        self.connection.initiate_connection()
        # The codec keeps the connection's window. The core's own must never be the limit.
        self.connection.receive_data(
            PREFACE + _settings(peer_settings) + window_update(0, LARGEST_WINDOW - DEFAULT_WINDOW)
        )
        while self.connection.next_event() is not _NEED_DATA:
            pass
        self.connection.data_to_send()

    @property
    def worn(self) -> bool:
        return (
            self.requests >= MOST_REQUESTS
            or self.live >= MOST_AT_ONCE
            or self.resets >= MOST_RESETS
        )


class _Stream:
    """A stream that is open on at least one side."""

    __slots__ = ("core", "ended", "handle", "heard")

    def __init__(self, core: _Core, handle: zttp.Stream, heard: bool) -> None:
        self.core = core
        self.handle = handle
        self.heard = heard
        """True if the peer has ended its side."""
        self.ended = False
        """True if the server has ended its side."""


class ZttpCodec:
    """Turns bytes into events, and calls into bytes."""

    max_header_list = 64 * 1024

    def __init__(self, told: CodecEvents) -> None:
        self._told = told
        self._out: list[bytes] = []
        self._settings: dict[int, int] = {}
        self._core = _Core(self._settings)
        self._streams: dict[int, _Stream] = {}
        self._last = 0
        self._window = DEFAULT_WINDOW
        self._windows = ReceiveWindows()
        self._no_table = False
        """True if the peer has agreed to send heads without a table."""
        self._head: _Core | None = None
        """The core that reads a head that is not complete yet."""

    # Reading

    def start(self) -> None:
        settings: dict[int, int] = {
            _SETTING_CODES.HEADER_TABLE_SIZE: 0,
            _SETTING_CODES.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
            _SETTING_CODES.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            _SETTING_CODES.MAX_HEADER_LIST_SIZE: self.max_header_list,
        }
        self._out.append(_settings(settings))
        self._out.append(window_update(0, CONNECTION_WINDOW - DEFAULT_WINDOW))

    def receive(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            kind, flags, number, raw = frame
            core = self._core_for(kind, number)
            if kind == _HEADERS or self._head is not None:
                self._head = None if flags & _END_HEADERS else core
            elif kind == _DATA:
                self._receive_data(core, number, raw)
                continue
            elif kind == _WINDOW_UPDATE and not number and len(raw) == HEAD_SIZE + _SIZE.size:
                self._open_window(_SIZE.unpack_from(raw, HEAD_SIZE)[0] & LARGEST_WINDOW)
                continue
            elif kind == _SETTINGS:
                self._receive_settings(core, flags, raw)
                continue
            elif kind == _PRIORITY and not number:
                self._break(ErrorCode.PROTOCOL_ERROR, "a priority of no stream")
            self._read(core, raw, by_peer=kind == _RST_STREAM)

    def _core_for(self, kind: int, number: int) -> _Core:
        """The core for a frame: the core of its open stream, otherwise the newest core."""
        if self._head is not None:
            return self._head
        if (stream := self._streams.get(number)) is not None:
            return stream.core
        if kind == _HEADERS and number > self._last:
            if self._no_table and self._core.worn:
                self._core = _Core(self._settings)
            self._core.requests += 1
            self._last = number
        return self._core

    def _read(self, core: _Core, raw: bytes, *, by_peer: bool = False) -> int:
        """Have a core read a frame, and pass its events on. Return how much of a body was in it."""
        connection = core.connection
        size = 0
        try:
            connection.receive_data(raw)
            while (event := connection.next_event()) is not _NEED_DATA:
                if isinstance(event, zttp.Data):
                    size = len(event.data)
                    self._told.body(event.stream_id, event.data, len(raw) - HEAD_SIZE)
                elif isinstance(event, zttp.RstStream):
                    core.resets += 1
                    self._forget(event.stream_id)
                    self._told.reset(event.stream_id, by_peer=by_peer)
                elif (react := _REACTIONS.get(type(event))) is not None:
                    react(self, core, event)
        except zttp.RemoteProtocolError as error:
            self._pass_on(connection.data_to_send(), str(error).encode())
            raise BadPeer(str(error)) from error
        if answer := connection.data_to_send():
            self._pass_on(answer)
        return size

    def _pass_on(self, answer: bytes, text: bytes = b"") -> None:
        """Queue the frames that a core makes by itself, without those about windows.

        A GOAWAY is made anew, since a core does not know the last stream.
        """
        for kind, _, _, raw in whole(answer):
            if kind == _GOAWAY:
                self.goaway(_CODES.unpack_from(raw, HEAD_SIZE)[1], text)
            elif kind != _WINDOW_UPDATE:
                self._out.append(raw)

    def _receive_data(self, core: _Core, number: int, raw: bytes) -> None:
        weight = len(raw) - HEAD_SIZE
        if weight and number and not self._windows.take(number, weight):
            self._break(ErrorCode.FLOW_CONTROL_ERROR, "more was sent than a window allowed")
        size = self._read(core, raw)
        if weight and not size:
            self.acknowledge(number, weight)
        if number not in self._streams:
            self._windows.forget(number)

    def _receive_settings(self, core: _Core, flags: int, raw: bytes) -> None:
        self._no_table = self._no_table or bool(flags & _ACK)
        self._read(core, raw)
        for other in {stream.core for stream in self._streams.values()} - {core}:
            other.connection.receive_data(raw)
            while other.connection.next_event() is not _NEED_DATA:
                pass
            other.connection.data_to_send()

    def _open_window(self, size: int) -> None:
        if not size:
            self._break(ErrorCode.PROTOCOL_ERROR, "a window was opened by nothing")
        if self._window + size > LARGEST_WINDOW:
            self._break(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is too large")
        self._window += size

    def _break(self, code: ErrorCode, text: str) -> None:
        self.goaway(code, text.encode())
        raise BadPeer(text)

    def _request(self, core: _Core, event: zttp.Request) -> None:
        number = event.stream_id
        self._streams[number] = _Stream(core, core.connection.stream(number), event.end_stream)
        core.live += 1
        fields = (
            (b":method", event.method),
            (
                b":scheme",
                b"http",
            ),  # the core has checked that there is one, and no handler asks for it
            (b":path", event.target),
            *event.headers,
        )
        self._told.request(number, fields, ended=event.end_stream)

    def _message_ended(self, core: _Core, event: zttp.EndOfMessage) -> None:
        number = event.stream_id
        if (stream := self._streams.get(number)) is not None:
            stream.heard = True
            if stream.ended:
                self._forget(number)
        if event.trailers:
            self._told.trailers(number, event.trailers)
        self._told.ended(number)

    def _settings_changed(self, core: _Core, event: zttp.Settings) -> None:
        for code, value in event.params:
            if code in (_SETTING_CODES.INITIAL_WINDOW_SIZE, _SETTING_CODES.MAX_FRAME_SIZE):
                self._settings[code] = value

    def _forget(self, number: int) -> None:
        if (stream := self._streams.pop(number, None)) is not None:
            stream.core.live -= 1
            self._windows.forget(number)

    # Sending

    def acknowledge(self, number: int, size: int) -> None:
        if frames := self._windows.give(number, size):
            self._out.append(frames)

    def window(self, number: int) -> int:
        if (stream := self._streams.get(number)) is None:
            return 0
        return min(self._window, stream.handle.send_window or 0)

    @property
    def max_frame(self) -> int:
        return self._settings.get(_SETTING_CODES.MAX_FRAME_SIZE, 2**14)

    def send_head(self, number: int, fields: Sequence[Field], *, end: bool) -> None:
        if (stream := self._streams.get(number)) is not None:
            head = [(name, value) for name, value in fields[1:]]
            stream.handle.send_response(int(fields[0][1]), head, end)
            self._out.append(stream.core.connection.data_to_send())
            if end:
                self._said(number, stream)

    def send_data(self, number: int, data: memoryview, *, end: bool) -> None:
        if (stream := self._streams.get(number)) is None:
            return
        connection = stream.core.connection
        if data:
            if connection.send_window < LOW_WINDOW:
                connection.receive_data(window_update(0, LOW_WINDOW))
                connection.next_event()
            stream.handle.send_data(data)
            self._window -= len(data)
        if end:
            stream.handle.end_message()
        frames = connection.data_to_send()
        if end and data:
            # The core ends a stream with an empty frame of its own.
            frames = make(FrameKind.DATA, number, bytes(data), Flag.END_STREAM)
        self._out.append(frames)
        if end:
            self._said(number, stream)

    def _said(self, number: int, stream: _Stream) -> None:
        """Note that the server's end of a stream is sent."""
        stream.ended = True
        if stream.heard:
            self._forget(number)

    def reset(self, number: int, code: ErrorCode) -> None:
        if (stream := self._streams.get(number)) is not None:
            stream.handle.reset(code)
            self._out.append(stream.core.connection.data_to_send())
            self._forget(number)

    def goaway(self, code: int, text: bytes = b"") -> None:
        self._out.append(make(FrameKind.GOAWAY, 0, _CODES.pack(self._last, code) + text))

    def queued(self) -> bytes:
        data = b"".join(self._out)
        self._out.clear()
        return data


def _settings(values: dict[int, int]) -> bytes:
    return make(FrameKind.SETTINGS, 0, b"".join([_SETTING.pack(*each) for each in values.items()]))


_REACTIONS: dict[type, Callable[[ZttpCodec, _Core, Any], None]] = {
    zttp.Request: ZttpCodec._request,
    zttp.EndOfMessage: ZttpCodec._message_ended,
    zttp.Settings: ZttpCodec._settings_changed,
}


_SIZE = Struct(">I")


class _ByteWindow:
    """The bytes that may still arrive, and the bytes that were read but not granted again."""

    __slots__ = ("due", "left", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = size
        self.due = 0

    def give(self, number: int, size: int) -> bytes:
        self.due += size
        if 2 * self.due < self.size:
            return b""
        self.left, due, self.due = self.left + self.due, self.due, 0
        return window_update(number, due)


class ReceiveWindows:
    """The windows of one connection and of those of its streams that receive a body."""

    def __init__(self) -> None:
        self._connection = _ByteWindow(CONNECTION_WINDOW)
        self._streams: dict[int, _ByteWindow] = {}

    def take(self, number: int, weight: int) -> bool:
        """Count a frame. Return False if a window did not allow it."""
        stream = self._streams.get(number)
        if stream is None:
            stream = self._streams[number] = _ByteWindow(STREAM_WINDOW)
        stream.left -= weight
        self._connection.left -= weight
        return stream.left >= 0 and self._connection.left >= 0

    def give(self, number: int, size: int) -> bytes:
        """The frames that grant read bytes again. There are none until enough have gathered."""
        frames = self._connection.give(0, size)
        if (stream := self._streams.get(number)) is not None:
            frames += stream.give(number, size)
        return frames

    def forget(self, number: int) -> None:
        """Drop the window of a stream on which no more bytes will arrive."""
        self._streams.pop(number, None)


def window_update(number: int, size: int) -> bytes:
    """The frame that opens a window by `size` bytes."""
    return make(FrameKind.WINDOW_UPDATE, number, _SIZE.pack(size))
