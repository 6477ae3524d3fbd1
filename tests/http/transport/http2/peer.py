"""A peer that sends any frames it likes and sees every frame that comes back."""

import asyncio
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from h2.settings import SettingCodes
from hpack import Decoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from zq.http.transport.h2.hpack import RepeatingEncoder

PATIENCE_S = 60.0
MAX_FRAME = 16_384

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GET = [(":method", "GET"), (":scheme", "http"), (":authority", "q"), (":path", "/health")]
POST = [(":method", "POST"), (":scheme", "http"), (":authority", "q"), (":path", "/jobs")]

Fields = list[tuple[str, str]]


def changed(fields: Fields, **changes: str | None) -> Fields:
    """Pseudo headers with other values (`path="/"`), or without some of them (None)."""
    found = dict(fields) | {f":{name}": value for name, value in changes.items()}
    return [(name, value) for name, value in found.items() if value is not None]


@dataclass
class Answer:
    """What came on one stream."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False
    frames: list[Frame] = field(default_factory=list)
    reset: int | None = None


class Ended(Exception):
    """The server has closed the connection."""


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.encoder = RepeatingEncoder()
        self.fields: dict[str, str] = {}
        """Of the last HEADERS that came."""
        self.writer = writer
        self.windows: Counter[int] = Counter()
        """Bytes that the server has given leave to send, by stream; 0 is the connection."""
        self._decoder = Decoder()
        self._reader = reader

    @classmethod
    async def open(
        cls,
        port: int,
        *,
        settings: dict[int, int] | None = None,
        tls: ssl.SSLContext | None = None,
        preface: bytes = PREFACE,
    ) -> Self:
        """Connect and send the preface and SETTINGS; the server's own are read and accepted."""
        name = "localhost" if tls else None
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=tls, server_hostname=name
        )
        peer = cls(reader, writer)
        if preface == PREFACE:
            writer.write(preface + SettingsFrame(0, settings or {}).serialize())
            asked = await peer.until(SettingsFrame)
            assert isinstance(asked, SettingsFrame)
            table = asked.settings.get(
                SettingCodes.HEADER_TABLE_SIZE, peer.encoder.header_table_size
            )
            peer.encoder.header_table_size = table
            peer.send(SettingsFrame(0, flags=["ACK"]))
        return peer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        # asyncio's TLS takes it amiss that the server sends on until it has read of the end.
        with suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()

    def send(self, *frames: Frame | bytes) -> None:
        """Frames, or bytes as they are, in one write."""
        self.writer.write(
            b"".join(each if isinstance(each, bytes) else each.serialize() for each in frames)
        )

    def headers(
        self,
        number: int,
        fields: Fields = GET,
        flags: tuple[str, ...] = ("END_HEADERS", "END_STREAM"),
    ) -> HeadersFrame:
        """A HEADERS frame, complete and ending its stream unless told otherwise."""
        return HeadersFrame(number, self.encoder.encode(fields), flags=flags)

    def blocks(self, number: int, fields: Fields) -> list[Frame]:
        """A head that ends its stream, in as many frames as it needs."""
        data = self.encoder.encode(fields, huffman=False)  # hpack takes the square of a length
        parts = [data[start : start + MAX_FRAME] for start in range(0, len(data), MAX_FRAME)]
        frames: list[Frame] = [HeadersFrame(number, parts[0], flags=["END_STREAM"])]
        frames += [ContinuationFrame(number, part) for part in parts[1:]]
        frames[-1].flags.add("END_HEADERS")
        return frames

    async def frame(self) -> Frame:
        """The next frame. Raises Ended."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                head = await self._reader.readexactly(9)
                frame, length = Frame.parse_frame_header(memoryview(head))
                frame.parse_body(memoryview(await self._reader.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Ended from None
        if isinstance(frame, HeadersFrame):
            fields = self._decoder.decode(frame.data)
            self.fields = {str(name): str(value) for name, value in fields}
        if isinstance(frame, WindowUpdateFrame):
            self.windows[frame.stream_id] += frame.window_increment
        return frame

    async def until(self, kind: type[Frame], stream: int | None = None) -> Frame:
        """The next frame of that kind, acknowledgements of SETTINGS left out. Raises Ended."""
        while True:
            frame = await self.frame()
            wanted = isinstance(frame, kind) and stream in (None, frame.stream_id)
            if wanted and not (kind is SettingsFrame and "ACK" in frame.flags):
                return frame

    async def answer(self, number: int, *, opens_window: bool = True) -> Answer:
        """All that comes on a stream up to its end or reset; other streams' frames are dropped."""
        answer = Answer()
        while not answer.ended and answer.reset is None:
            frame = await self.frame()
            if frame.stream_id != number:
                continue
            answer.frames.append(frame)
            answer.ended = "END_STREAM" in frame.flags
            if isinstance(frame, HeadersFrame):
                answer.headers = self.fields
                answer.status = int(answer.headers.pop(":status"))
            elif isinstance(frame, DataFrame):
                answer.body += frame.data
                if opens_window and frame.data:
                    size = len(frame.data)
                    self.send(WindowUpdateFrame(0, size), WindowUpdateFrame(number, size))
            elif isinstance(frame, RstStreamFrame):
                answer.reset = frame.error_code
        return answer

    async def get(self, number: int, path: str = "/health") -> Answer:
        """One more request, to see that the connection is well."""
        self.send(self.headers(number, changed(GET, path=path)))
        return await self.answer(number)

    async def goaway(self) -> int:
        """The error code of the GOAWAY that must come before the connection ends."""
        frame = await self.until(GoAwayFrame)
        assert isinstance(frame, GoAwayFrame)
        return frame.error_code

    async def ping(self) -> None:
        """A round trip: whatever was sent before has been seen."""
        self.send(PingFrame(0, b"seen yet"))
        while True:
            frame = await self.until(PingFrame)
            if "ACK" in frame.flags:
                return

    async def closed(self) -> None:
        """Wait until the server closes the connection."""
        with suppress(Ended):
            while True:
                await self.frame()
