"""The h2 library's connection, where it is too strict for a server that shares connections."""

from h2.config import H2Configuration
from h2.connection import (
    ConnectionInputs,
    ConnectionState,
    H2Connection,
    H2ConnectionStateMachine,
)
from h2.exceptions import DenialOfServiceError
from h2.frame_buffer import CONTINUATION_BACKLOG, FrameBuffer
from h2.settings import SettingCodes, Settings
from hyperframe.frame import Frame

from zq.http.h2.hpack import RepeatingDecoder, RepeatingEncoder

MAX_STREAMS = 200
"""Requests under way on one connection: what Zizq allows."""

MAX_HEADER_LIST = 128 * 1024
"""Bytes of all headers of a request, 32 for each besides. More ends the connection (h2)."""

STREAM_WINDOW = 256 * 1024
CONNECTION_WINDOW = 1024 * 1024
"""Bytes of bodies that may come before a handler has read any of them."""

_MANY = 2 * MAX_STREAMS

_TYPE_AT = 3  # in a frame (RFC 9113, 4.1)
_HEAD_FRAMES = (b"\x01", b"\x09")  # HEADERS, CONTINUATION


class _States(H2ConnectionStateMachine):
    """GOAWAY tells of no new streams. Those that are open go on, whoever said it."""

    _transitions = H2ConnectionStateMachine._transitions | {
        (state, goaway): (None, state)
        for state in (ConnectionState.IDLE, ConnectionState.SERVER_OPEN)
        for goaway in (ConnectionInputs.SEND_GOAWAY, ConnectionInputs.RECV_GOAWAY)
    }


class _FrameBuffer(FrameBuffer):
    """h2 bounds the frames of one block of headers, but does not call too many a flood."""

    def _update_header_buffer(self, f: Frame | None) -> Frame | None:
        if len(self._headers_buffer) >= CONTINUATION_BACKLOG:
            raise DenialOfServiceError("too many CONTINUATION frames")
        return super()._update_header_buffer(f)


class Frames(H2Connection):
    """Bytes to events, and calls to bytes.

    It does not judge headers: it would end the connection where one request is to be refused.
    """

    def __init__(self) -> None:
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
        self.incoming_buffer = _FrameBuffer(server=True)
        self.encoder = RepeatingEncoder()
        self.decoder = RepeatingDecoder()
        self.decoder.max_header_list_size = MAX_HEADER_LIST
        self.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
                SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_LIST,
                SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            },
        )

    def initiate_connection(self) -> None:
        """Queue the server's preface: its settings and the connection's window."""
        super().initiate_connection()
        self.increment_flow_control_window(CONNECTION_WINDOW - self.inbound_flow_control_window)

    @property
    def in_head(self) -> bool:
        """Whether a head has begun that is not whole, in its first frame or in a later one."""
        # h2 has no public word for what it has not parsed yet.
        buffer = self.incoming_buffer
        begun = buffer._data[_TYPE_AT : _TYPE_AT + 1]
        return bool(buffer._headers_buffer) or begun in _HEAD_FRAMES

    @property
    def open_inbound_streams(self) -> int:
        """None, as h2 asks only to end a connection with too many: those are refused one by one."""
        if len(self.streams) > _MANY:
            self._open_streams(0)  # forgets closed streams as it counts
        return 0

    def clear_outbound_data_buffer(self) -> None:
        """Drop nothing: what is queued for open streams is still due after a GOAWAY."""
