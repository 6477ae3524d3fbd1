"""The form of errors where h2spec leaves a choice: the code, and how much else ends."""

from collections.abc import Callable, Sequence

import pytest
from conformance.site import Site
from h2.errors import ErrorCodes
from hyperframe.frame import (
    DataFrame,
    Frame,
    PriorityFrame,
    RstStreamFrame,
    WindowUpdateFrame,
)

from .peer import GET, POST, Peer, changed

OPEN = ("END_HEADERS",)
DONE = ("END_HEADERS", "END_STREAM")
PROTOCOL = ErrorCodes.PROTOCOL_ERROR
FLOW = ErrorCodes.FLOW_CONTROL_ERROR
CLOSED = ErrorCodes.STREAM_CLOSED

Case = Callable[[Peer], Sequence[Frame | bytes]]


def raw(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """A frame that no library would make."""
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (lambda p: [DataFrame(1, b"x")], PROTOCOL),
        (lambda p: [raw(6, 0, 0, bytes(6))], ErrorCodes.FRAME_SIZE_ERROR),
        (lambda p: [raw(1, 5, 1, b"\x82" * 16_385)], ErrorCodes.FRAME_SIZE_ERROR),
        (lambda p: [WindowUpdateFrame(0, 2**31 - 1)] * 2, FLOW),
    ],
    ids=["idle-stream", "ping-of-six-bytes", "frame-too-long", "window-too-large"],
)
async def test_a_connection_error_is_told_with_goaway_before_the_end(
    peer: Peer, frames: Case, code: ErrorCodes
) -> None:
    peer.send(*frames(peer))
    assert await peer.goaway() == code
    await peer.closed()


def open_and_reset(peer: Peer) -> list[Frame]:
    return [peer.headers(1, POST, OPEN), RstStreamFrame(1, 8)]


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (lambda p: [p.headers(1), DataFrame(1, b"x", flags=["END_STREAM"])], CLOSED),
        (lambda p: [*open_and_reset(p), DataFrame(1, b"x")], CLOSED),
        (lambda p: [p.headers(1, POST, OPEN), WindowUpdateFrame(1, 2**31 - 1)], FLOW),
    ],
    ids=["data-after-the-end", "data-after-a-reset", "window-too-large"],
)
async def test_a_stream_error_resets_its_stream_alone(
    peer: Peer, frames: Case, code: ErrorCodes
) -> None:
    peer.send(*frames(peer))
    reset = await peer.until(RstStreamFrame, 1)
    assert isinstance(reset, RstStreamFrame)
    assert reset.error_code == code
    assert (await peer.get(3)).status == 200


MALFORMED = {
    "upper-case": [*GET, ("X-Upper", "1")],
    "unknown-pseudo": [*GET, (":test", "1")],
    "pseudo-of-answers": [*GET, (":status", "200")],
    "pseudo-after-others": [GET[0], ("x-test", "1"), *GET[1:]],
    "of-the-connection": [*GET, ("connection", "keep-alive")],
    "te": [*GET, ("te", "trailers, deflate")],
    "empty-path": changed(GET, path=""),
    "no-method": changed(GET, method=None),
    "no-scheme": changed(GET, scheme=None),
    "no-path": changed(GET, path=None),
    "two-methods": [*GET, (":method", "GET")],
    "two-schemes": [*GET, (":scheme", "http")],
    "two-paths": [*GET, (":path", "/")],
    "nul": [*GET, ("x-test", "a\0b")],
    "space": [*GET, ("x-test", " a")],
    "another-host": [*GET, ("host", "elsewhere")],
    "announced-body": [*GET, ("content-length", "5")],
    "fragment": changed(GET, path="/health#x"),
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_request_is_answered_400_and_its_connection_goes_on(
    peer: Peer, fields: list[tuple[str, str]]
) -> None:
    peer.send(peer.headers(1, fields))
    answer = await peer.answer(1)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
    assert answer.body.startswith(b'{"error":"bad HTTP request: ')
    assert (await peer.get(3)).status == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (changed(GET, path="/" + "x" * 65_537), 414),
        ([*GET, ("x-long", "x" * 65_537)], 431),
        ([*GET, *((f"x-{number}", "y") for number in range(101))], 431),
    ],
    ids=["path", "header", "headers"],
)
async def test_what_is_too_long_is_answered_as_over_http_1(
    peer: Peer, fields: list[tuple[str, str]], status: int
) -> None:
    peer.send(*peer.blocks(1, fields))
    answer = await peer.answer(1)
    assert (answer.status, answer.body[:9]) == (status, b'{"error":')
    assert (await peer.get(3)).status == 200


@pytest.mark.parametrize("trailer", [(":method", "GET"), ("X-Upper", "1"), ("connection", "x")])
async def test_malformed_trailers_reset_their_stream(peer: Peer, trailer: tuple[str, str]) -> None:
    peer.send(peer.headers(1, POST, OPEN), DataFrame(1, b"{}"), peer.headers(1, [trailer]))
    answer = await peer.answer(1)
    assert answer.reset == PROTOCOL
    assert (await peer.get(3)).status == 200


async def test_an_end_of_the_preface_that_is_wrong_is_no_http_2(site: Site) -> None:
    """What begins otherwise is HTTP/1.1, and bad at that."""
    async with await Peer.open(site.port, preface=b"") as peer:
        peer.writer.write(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
        head = await peer._reader.readuntil(b"\r\n")
        assert head.split()[1] == b"400"


async def test_frames_on_a_stream_that_was_just_reset_are_tolerated(peer: Peer) -> None:
    """WINDOW_UPDATE, RST_STREAM and PRIORITY may have crossed the reset."""
    peer.send(*open_and_reset(peer))
    peer.send(WindowUpdateFrame(1, 10), RstStreamFrame(1, 8), PriorityFrame(1))
    assert (await peer.get(3)).status == 200
