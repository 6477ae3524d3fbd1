"""After any bytes behind the preface, the connection ends in order or goes on."""

import logging
from collections.abc import Sequence

import pytest
from conformance.site import Site
from hpack import Encoder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zq.http.transport.h2.codec import BadPeer, ErrorCode, Field, Http2Codec, codec_by
from zq.http.transport.h2.frames import FrameKind, Splitter, cost_of, make, whole

from .peer import GET, POST, Peer

KINDS = st.integers(0, 10)
FRAMES = st.tuples(
    KINDS,
    st.integers(0, 255),
    st.sampled_from([0, 1, 2, 3, 5, 2**31 - 1]),
    st.binary(max_size=40) | st.sampled_from([b"\x82\x84\x86\x41\x01q", b"\x83\x84\x86"]),
)


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


MANY = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@MANY
@given(frames=st.lists(FRAMES, max_size=12))
async def test_no_frames_break_the_server(
    site: Site, caplog: pytest.LogCaptureFixture, frames: list[tuple[int, int, int, bytes]]
) -> None:
    async with await Peer.open(site.port) as peer:
        peer.send(*(frame(*each) for each in frames))
        peer.writer.write_eof()
        await peer.closed()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


class Requests:
    """What a codec tells: the streams that can be answered."""

    def __init__(self, http2_engine: str) -> None:
        self.open: list[int] = []
        self.codec: Http2Codec = codec_by(http2_engine)(self)

    def request(self, number: int, fields: Sequence[Field], *, ended: bool) -> None:
        self.open.append(number)

    def body(self, number: int, data: bytes, weight: int) -> None:
        self.codec.acknowledge(number, weight)

    def trailers(self, number: int, fields: Sequence[Field]) -> None:
        pass

    def ended(self, number: int) -> None:
        pass

    def reset(self, number: int, *, by_peer: bool) -> None:
        if number in self.open:
            self.open.remove(number)

    def answer(self, number: int, way: int) -> None:
        """With a reset, a head, some of a body, or all of it."""
        if not way:
            self.codec.reset(number, ErrorCode.CANCEL)
        else:
            self.codec.send_head(number, [(b":status", b"200")], end=way == 1)
        if way > 1 and (size := min(self.codec.window(number), 500)) > 0:
            self.codec.send_data(number, memoryview(bytes(size)), end=way == 2)
        self.open.remove(number)


STEPS = st.tuples(
    st.sampled_from(["get", "post", "data", "end", "trailers", "reset", "window", "settings"])
    | st.sampled_from(["get", "post", "answer", "answer", "answer"]),
    st.integers(0, 200),
)


@MANY
@given(steps=st.lists(STEPS, max_size=80))
def test_requests_that_end_in_any_way_break_no_codec(
    http2_engine: str, steps: list[tuple[str, int]]
) -> None:
    told = Requests(http2_engine)
    codec, encoder, splitter = told.codec, Encoder(), Splitter()
    encoder.header_table_size = 0
    number = 1

    def receive(kind: int, stream: int, payload: bytes, flags: int = 0) -> None:
        splitter.feed(make(kind, stream, payload, flags))
        codec.receive(splitter.split(1, cost_of)[0])

    codec.start()
    receive(FrameKind.SETTINGS, 0, b"")
    receive(FrameKind.SETTINGS, 0, b"", 1)
    try:
        for step, value in steps:
            one = told.open[value % len(told.open)] if told.open else 0
            if step in ("get", "post"):
                head = encoder.encode(GET if step == "get" else POST)
                receive(FrameKind.HEADERS, number, head, 5 if step == "get" else 4)
                number += 2
            elif step == "settings":
                receive(FrameKind.SETTINGS, 0, b"\0\4" + (100 * value).to_bytes(4, "big"))
            elif step == "window":
                receive(FrameKind.WINDOW_UPDATE, one, (value + 1).to_bytes(4, "big"))
            elif one and step == "answer":
                told.answer(one, value % 4)
            elif one and step == "reset":
                receive(FrameKind.RST_STREAM, one, bytes(4))
            elif one and step == "trailers":
                receive(FrameKind.HEADERS, one, encoder.encode([("x-sum", "1")]), 5)
            elif one:
                receive(FrameKind.DATA, one, bytes(value), 1 if step == "end" else 0)
    except BadPeer:
        assert any(kind == FrameKind.GOAWAY for kind, *_ in whole(codec.queued()))
