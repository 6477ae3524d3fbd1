"""The codec of the h2 library. It relaxes h2 where one bad request would end the connection."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from h2 import events
from h2.config import H2Configuration
from h2.connection import (
    ConnectionInputs,
    ConnectionState,
    H2Connection,
    H2ConnectionStateMachine,
)
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings
from hpack import NeverIndexedHeaderTuple

from zq.http.transport.h2.codec import (
    CONNECTION_WINDOW,
    MAX_STREAMS,
    STREAM_WINDOW,
    BadPeer,
    CodecEvents,
    ErrorCode,
    Field,
)
from zq.http.transport.h2.frames import PREFACE, Frame
from zq.http.transport.h2.hpack import RepeatingDecoder, RepeatingEncoder

_MANY = 2 * MAX_STREAMS
_CONTENT_LENGTH = b"content-length"


class H2Codec:
    """Turns bytes into events, and calls into bytes."""

    max_header_list = 128 * 1024

    def __init__(self, told: CodecEvents) -> None:
        self._told = told
        self._connection = _Connection(self.max_header_list)

    def start(self) -> None:
        connection = self._connection
        connection.initiate_connection()
        connection.increment_flow_control_window(
            CONNECTION_WINDOW - connection.inbound_flow_control_window
        )
        connection.receive_data(PREFACE)

    def receive(self, frames: Sequence[Frame]) -> None:
        try:
            found = self._connection.receive_data(b"".join([frame[3] for frame in frames]))
        except ProtocolError as error:
            raise BadPeer(str(error)) from error
        for event in found:
            if (tell := _TELL.get(type(event))) is not None:
                tell(self._told, event)

    def acknowledge(self, number: int, size: int) -> None:
        self._connection.acknowledge_received_data(size, number)

    def window(self, number: int) -> int:
        try:
            return self._connection.local_flow_control_window(number)
        except StreamClosedError:
            return 0

    @property
    def max_frame(self) -> int:
        return self._connection.max_outbound_frame_size

    def send_head(self, number: int, fields: Sequence[Field], *, end: bool) -> None:
        # A length in the peer's table would displace headers that repeat.
        head = [
            NeverIndexedHeaderTuple(*field) if field[0] == _CONTENT_LENGTH else field
            for field in fields
        ]
        self._connection.send_headers(number, head, end_stream=end)

    def send_data(self, number: int, data: memoryview, *, end: bool) -> None:
        self._connection.send_data(number, data, end_stream=end)

    def reset(self, number: int, code: ErrorCode) -> None:
        # The peer may have reset the stream too, in a frame that was read together with this one.
        with contextlib.suppress(StreamClosedError):
            self._connection.reset_stream(number, code)

    def goaway(self, code: ErrorCode, text: bytes = b"") -> None:
        self._connection.close_connection(code, text or None)

    def queued(self) -> bytes:
        return self._connection.data_to_send()


class _States(H2ConnectionStateMachine):
    """Lets open streams go on after a GOAWAY of either side. A GOAWAY only ends new streams."""

    _transitions = H2ConnectionStateMachine._transitions | {
        (state, goaway): (None, state)
        for state in (ConnectionState.IDLE, ConnectionState.SERVER_OPEN)
        for goaway in (ConnectionInputs.SEND_GOAWAY, ConnectionInputs.RECV_GOAWAY)
    }


class _Connection(H2Connection):
    """Does not check headers: h2 would end the connection where zq refuses one request."""

    def __init__(self, max_header_list: int) -> None:
        super().__init__(
            H2Configuration(
                client_side=False,
                validate_inbound_headers=False,
                normalize_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self.state_machine = _States()
        self.encoder = RepeatingEncoder()
        self.decoder = RepeatingDecoder()
        self.decoder.max_header_list_size = max_header_list
        self.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
                SettingCodes.MAX_HEADER_LIST_SIZE: max_header_list,
                SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            },
        )

    @property
    def open_inbound_streams(self) -> int:
        """0. h2 would end a connection with too many streams, but zq refuses streams one by one."""
        if len(self.streams) > _MANY:
            self._open_streams(0)  # The count also makes h2 forget closed streams.
        return 0

    def clear_outbound_data_buffer(self) -> None:
        """Drop nothing: open streams still need what is queued for them after a GOAWAY."""


def _request(told: CodecEvents, event: events.RequestReceived) -> None:
    told.request(event.stream_id, event.headers, ended=event.stream_ended is not None)


def _data(told: CodecEvents, event: events.DataReceived) -> None:
    told.body(event.stream_id, event.data, event.flow_controlled_length)


def _trailers(told: CodecEvents, event: events.TrailersReceived) -> None:
    told.trailers(event.stream_id, event.headers)


def _ended(told: CodecEvents, event: events.StreamEnded) -> None:
    told.ended(event.stream_id)


def _reset(told: CodecEvents, event: events.StreamReset) -> None:
    told.reset(event.stream_id, by_peer=event.remote_reset)


_TELL: dict[type[events.Event], Callable[[CodecEvents, Any], None]] = {
    events.RequestReceived: _request,
    events.DataReceived: _data,
    events.TrailersReceived: _trailers,
    events.StreamEnded: _ended,
    events.StreamReset: _reset,
}
