"""The cases of h2spec that a peer can express, by their numbers there. README.md has the table."""

from collections.abc import Callable, Sequence

import pytest
from conformance.site import Site
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from .peer import GET, POST, Ended, Peer, changed

OPEN = ("END_HEADERS",)
DONE = ("END_HEADERS", "END_STREAM")
PROTOCOL = ErrorCodes.PROTOCOL_ERROR
SIZE = ErrorCodes.FRAME_SIZE_ERROR
FLOW = ErrorCodes.FLOW_CONTROL_ERROR
CLOSED = ErrorCodes.STREAM_CLOSED
COMPRESSION = ErrorCodes.COMPRESSION_ERROR

Case = Callable[[Peer], Sequence[Frame | bytes]]


def raw(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    """A frame that no library would make."""
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def case(number: str, frames: Case, *codes: ErrorCodes) -> object:
    return pytest.param(frames, codes, id=number)


CONNECTION_ERRORS = [
    case("4.2/2", lambda p: [p.headers(1, POST, OPEN), raw(0, 0, 1, b"x" * 16_385)], SIZE),
    case("4.2/3", lambda p: [raw(1, 5, 1, b"\x82" * 16_385)], SIZE),
    case("4.3/1", lambda p: [raw(1, 5, 1, b"\xff\xff\xff\xff\xff")], COMPRESSION, PROTOCOL),
    case("4.3/2", lambda p: [raw(1, 1, 1, b"\x82"), PriorityFrame(1)], PROTOCOL),
    case("4.3/3", lambda p: [raw(1, 1, 1, b"\x82"), p.headers(3)], PROTOCOL),
    case("5.1/1", lambda p: [DataFrame(1, b"x")], PROTOCOL),
    case("5.1/2", lambda p: [RstStreamFrame(1, 8)], PROTOCOL),
    case("5.1/3", lambda p: [WindowUpdateFrame(1, 100)], PROTOCOL),
    case("5.1/4", lambda p: [ContinuationFrame(1, b"\x82", flags=["END_HEADERS"])], PROTOCOL),
    case("5.1.1/1", lambda p: [p.headers(2)], PROTOCOL),
    case("5.1.1/2", lambda p: [p.headers(5), p.headers(3)], PROTOCOL),
    case("6.1/1", lambda p: [raw(0, 0, 0, b"x")], PROTOCOL),
    case("6.1/3", lambda p: [p.headers(1, POST, OPEN), raw(0, 8, 1, b"\x06test")], PROTOCOL),
    case("6.2/1", lambda p: [raw(1, 1, 1, b"\x82"), p.headers(3, POST, OPEN)], PROTOCOL),
    case("6.2/3", lambda p: [raw(1, 5, 0, b"\x82\x84\x86")], PROTOCOL),
    case("6.2/4", lambda p: [raw(1, 0x0D, 1, b"\x06\x82")], PROTOCOL),
    case("6.3/1", lambda p: [raw(2, 0, 0, bytes(5))], PROTOCOL),
    case("6.3/2", lambda p: [raw(2, 0, 1, bytes(4))], SIZE, PROTOCOL),
    case("6.4/1", lambda p: [raw(3, 0, 0, bytes(4))], PROTOCOL),
    case("6.4/2", lambda p: [RstStreamFrame(1, 8)], PROTOCOL),
    case("6.4/3", lambda p: [p.headers(1, POST, OPEN), raw(3, 0, 1, bytes(3))], SIZE),
    case("6.5/1", lambda p: [raw(4, 1, 0, bytes(6))], SIZE, PROTOCOL),
    case("6.5/2", lambda p: [raw(4, 0, 1, bytes(6))], PROTOCOL),
    case("6.5/3", lambda p: [raw(4, 0, 0, bytes(3))], SIZE),
    case("6.5.2/1", lambda p: [SettingsFrame(0, {SettingCodes.ENABLE_PUSH: 2})], PROTOCOL),
    case("6.5.2/2", lambda p: [SettingsFrame(0, {4: 2**31})], FLOW),
    case("6.5.2/3", lambda p: [SettingsFrame(0, {5: 16_383})], PROTOCOL),
    case("6.5.2/4", lambda p: [SettingsFrame(0, {5: 2**24})], PROTOCOL),
    case("6.7/3", lambda p: [raw(6, 0, 1, bytes(8))], PROTOCOL),
    case("6.7/4", lambda p: [raw(6, 0, 0, bytes(6))], SIZE),
    case("6.8/1", lambda p: [raw(7, 0, 1, bytes(8))], PROTOCOL),
    case("6.9/1", lambda p: [raw(8, 0, 0, bytes(4))], PROTOCOL),
    case("6.9/3", lambda p: [raw(8, 0, 0, bytes(3))], SIZE),
    case("6.9.1/2", lambda p: [WindowUpdateFrame(0, 2**31 - 1)] * 2, FLOW),
    case("6.9.2/3", lambda p: [SettingsFrame(0, {4: 2**31})], FLOW),
    case(
        "6.10/2",
        lambda p: [p.headers(1), ContinuationFrame(1, b"\x82", flags=["END_HEADERS"])],
        PROTOCOL,
        CLOSED,
    ),
    case("6.10/3", lambda p: [raw(9, 4, 0, b"\x82")], PROTOCOL),
    case(
        "6.10/6",
        lambda p: [p.headers(1, POST, OPEN), DataFrame(1, b"x"), raw(9, 4, 1, b"\x82")],
        PROTOCOL,
    ),
    case("8.2/1", lambda p: [raw(5, 4, 1, b"\0\0\0\2\x82")], PROTOCOL),
    case("generic/priority-of-itself", lambda p: [PriorityFrame(1, depends_on=1)], PROTOCOL),
]


@pytest.mark.parametrize(("frames", "codes"), CONNECTION_ERRORS)
async def test_a_connection_error_is_told_with_goaway(
    peer: Peer, frames: Case, codes: Sequence[ErrorCodes]
) -> None:
    peer.send(*frames(peer), PingFrame(0, b"seen yet"))
    while not isinstance(frame := await peer.frame(), GoAwayFrame | PingFrame):
        pass
    assert isinstance(frame, GoAwayFrame), "the server goes on"
    assert frame.error_code in codes
    await peer.closed()


# The RFC asks for the end of the stream only; ending the connection is allowed for any error.
EITHER = [
    case("6.9/2", lambda p: [p.headers(1, POST, OPEN), raw(8, 0, 1, bytes(4))], PROTOCOL),
    case(
        "8.1.2.6/1",
        lambda p: [
            p.headers(1, [*POST, ("content-length", "1")], OPEN),
            DataFrame(1, b"test", flags=["END_STREAM"]),
        ],
        PROTOCOL,
    ),
    case("8.1/1", lambda p: [p.headers(1, POST, OPEN), p.headers(1, [("x", "1")], OPEN)], PROTOCOL),
]


@pytest.mark.parametrize(("frames", "codes"), EITHER)
async def test_a_bad_stream_is_reset_or_ends_its_connection(
    peer: Peer, frames: Case, codes: Sequence[ErrorCodes]
) -> None:
    peer.send(*frames(peer))
    while not isinstance(frame := await peer.frame(), RstStreamFrame | GoAwayFrame):
        pass
    assert frame.error_code in codes


STREAM_ERRORS = [
    case("5.1/5", lambda p: [p.headers(1), DataFrame(1, b"x", flags=["END_STREAM"])], CLOSED),
    case("5.1/8", lambda p: [*open_and_reset(p), DataFrame(1, b"x")], CLOSED),
    case("6.9.1/3", lambda p: [p.headers(1, POST, OPEN), WindowUpdateFrame(1, 2**31 - 1)], FLOW),
]


CROSSED = [
    case("5.1/11", lambda p: [DataFrame(1, b"x", flags=["END_STREAM"])], CLOSED),
    case("5.1/12", lambda p: [p.headers(1)], CLOSED),
    case("5.1/13", lambda p: [raw(9, 4, 1, b"\x82")], PROTOCOL, CLOSED),
]


@pytest.mark.parametrize(("frames", "codes"), CROSSED)
async def test_frames_on_a_stream_that_has_ended_are_an_error(
    peer: Peer, frames: Case, codes: Sequence[ErrorCodes]
) -> None:
    assert (await peer.get(1)).ended
    peer.send(*frames(peer))
    frame = await peer.frame()
    assert isinstance(frame, RstStreamFrame | GoAwayFrame)
    assert frame.error_code in codes


def open_and_reset(peer: Peer) -> list[Frame]:
    return [peer.headers(1, POST, OPEN), RstStreamFrame(1, 8)]


@pytest.mark.parametrize(("frames", "codes"), STREAM_ERRORS)
async def test_a_stream_error_resets_its_stream_alone(
    peer: Peer, frames: Case, codes: Sequence[ErrorCodes]
) -> None:
    peer.send(*frames(peer))
    reset = await peer.until(RstStreamFrame, 1)
    assert isinstance(reset, RstStreamFrame)
    assert reset.error_code in codes
    assert (await peer.get(3)).status == 200


MALFORMED = {
    "8.1.2/1": [*GET, ("X-Upper", "1")],
    "8.1.2.1/1": [*GET, (":test", "1")],
    "8.1.2.1/2": [*GET, (":status", "200")],
    "8.1.2.1/4": [GET[0], ("x-test", "1"), *GET[1:]],
    "8.1.2.2/1": [*GET, ("connection", "keep-alive")],
    "8.1.2.2/2": [*GET, ("te", "trailers, deflate")],
    "8.1.2.3/1": changed(GET, path=""),
    "8.1.2.3/2": changed(GET, method=None),
    "8.1.2.3/3": changed(GET, scheme=None),
    "8.1.2.3/4": changed(GET, path=None),
    "8.1.2.3/5": [*GET, (":method", "GET")],
    "8.1.2.3/6": [*GET, (":scheme", "http")],
    "8.1.2.3/7": [*GET, (":path", "/")],
    "rfc9113-8.2.1/nul": [*GET, ("x-test", "a\0b")],
    "rfc9113-8.2.1/space": [*GET, ("x-test", " a")],
    "rfc9113-8.3.1/host": [*GET, ("host", "elsewhere")],
    "rfc9113-8.3.1/fragment": changed(GET, path="/health#x"),
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


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_request_is_refused_and_its_connection_goes_on(
    peer: Peer, fields: list[tuple[str, str]]
) -> None:
    peer.send(peer.headers(1, fields))
    answer = await peer.answer(1)
    assert (answer.status, answer.reset) in ((400, None), (0, PROTOCOL))
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
    """3.5/2: what begins otherwise is HTTP/1.1, and bad at that."""
    async with await Peer.open(site.port, preface=b"") as peer:
        peer.writer.write(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
        head = await peer._reader.readuntil(b"\r\n")
        assert head.split()[1] == b"400"


async def test_frames_on_a_stream_that_was_just_reset_are_tolerated(peer: Peer) -> None:
    """5.1/6 and 5.1/9: WINDOW_UPDATE, RST_STREAM and PRIORITY may have crossed."""
    peer.send(*open_and_reset(peer))
    peer.send(WindowUpdateFrame(1, 10), RstStreamFrame(1, 8), PriorityFrame(1))
    assert (await peer.get(3)).status == 200


async def test_settings_change_the_windows_of_open_streams(site: Site) -> None:
    """6.9.2/1."""
    async with await Peer.open(site.port, settings={SettingCodes.INITIAL_WINDOW_SIZE: 0}) as peer:
        peer.send(peer.headers(1))
        await peer.until(HeadersFrame, 1)
        peer.send(SettingsFrame(0, {SettingCodes.INITIAL_WINDOW_SIZE: 1}))
        data = await peer.until(DataFrame, 1)
        assert isinstance(data, DataFrame)
        assert len(data.data) == 1


async def test_a_ping_with_ack_is_not_answered(peer: Peer) -> None:
    """6.7/2."""
    peer.send(PingFrame(0, b"ack'd it", flags=["ACK"]), PingFrame(0, b"12345678"))
    answer = await peer.until(PingFrame)
    assert isinstance(answer, PingFrame)
    assert answer.opaque_data == b"12345678"


async def test_a_goaway_of_the_peer_ends_nothing_by_itself(peer: Peer) -> None:
    """generic/3.8."""
    peer.send(GoAwayFrame(0, error_code=0))
    await peer.ping()


async def test_the_server_closes_after_its_goaway(peer: Peer) -> None:
    peer.send(raw(6, 0, 0, bytes(6)))
    await peer.goaway()
    with pytest.raises(Ended):
        while True:
            await peer.frame()
