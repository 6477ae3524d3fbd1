"""Whatever comes after the preface, the connection ends in good order or goes on."""

import logging

import pytest
from conformance.site import Site
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .peer import Peer

KINDS = st.integers(0, 10)
FRAMES = st.tuples(
    KINDS,
    st.integers(0, 255),
    st.sampled_from([0, 1, 2, 3, 5, 2**31 - 1]),
    st.binary(max_size=40) | st.sampled_from([b"\x82\x84\x86\x41\x01q", b"\x83\x84\x86"]),
)


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(frames=st.lists(FRAMES, max_size=12))
async def test_no_frames_break_the_server(
    site: Site, caplog: pytest.LogCaptureFixture, frames: list[tuple[int, int, int, bytes]]
) -> None:
    async with await Peer.open(site.port) as peer:
        peer.send(*(frame(*each) for each in frames))
        peer.writer.write_eof()
        await peer.closed()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
