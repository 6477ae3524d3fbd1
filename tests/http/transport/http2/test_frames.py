"""The duties of every HTTP/2 server: settings, pings, windows, and announced ends."""

import json
import logging

import pytest
from conformance.client import new_job
from conformance.site import Site
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from zq.http.transport.h2.codec import STREAM_WINDOW

from .peer import GET, POST, Answer, Peer, changed

OPEN = ("END_HEADERS",)
BODY = json.dumps(new_job()).encode()


def names(answer: Answer) -> list[str]:
    """The kinds of its frames."""
    return [type(frame).__name__ for frame in answer.frames]


async def test_the_server_begins_with_its_settings(site: Site, http2_engine: str) -> None:
    async with await Peer.open(site.port, preface=b"") as peer:
        peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SettingsFrame(0))
        first = await peer.frame()
        assert isinstance(first, SettingsFrame)
        assert first.settings[SettingCodes.MAX_CONCURRENT_STREAMS] == 200
        allowed = {"h2": 128 * 1024, "zttp": 64 * 1024}
        assert first.settings[SettingCodes.MAX_HEADER_LIST_SIZE] == allowed[http2_engine]


async def test_a_preface_that_comes_byte_by_byte_is_http_2(site: Site) -> None:
    async with await Peer.open(site.port, preface=b"") as peer:
        for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
            peer.writer.write(bytes([byte]))
            await peer.writer.drain()
        peer.send(SettingsFrame(0))
        assert isinstance(await peer.frame(), SettingsFrame)


async def test_settings_are_acknowledged(peer: Peer) -> None:
    peer.send(SettingsFrame(0, {SettingCodes.MAX_FRAME_SIZE: 20_000, 0x7F: 5}))
    acknowledgements = 0
    while acknowledgements < 2:  # of the first settings, and of these
        frame = await peer.frame()
        acknowledgements += isinstance(frame, SettingsFrame) and "ACK" in frame.flags


async def test_a_ping_is_answered_with_its_own_bytes(peer: Peer) -> None:
    peer.send(PingFrame(0, b"12345678"))
    answer = await peer.until(PingFrame)
    assert isinstance(answer, PingFrame)
    assert (answer.opaque_data, "ACK" in answer.flags) == (b"12345678", True)


async def test_frames_of_unknown_kinds_are_ignored(peer: Peer) -> None:
    peer.send(b"\0\0\x08\xfa\0\0\0\0\0whatever")
    assert (await peer.get(1)).status == 200


async def test_an_answer_ends_with_end_stream_on_its_last_frame(peer: Peer) -> None:
    answer = await peer.get(1)
    assert names(answer) == ["HeadersFrame", "DataFrame"]
    assert answer.ended
    assert "transfer-encoding" not in answer.headers
    assert "connection" not in answer.headers


async def test_a_204_is_headers_alone(peer: Peer) -> None:
    peer.send(peer.headers(1, changed(POST, path="/reset")))
    answer = await peer.answer(1)
    assert answer.status == 204
    assert names(answer) == ["HeadersFrame"]


@pytest.mark.parametrize("path", ["/health", "/jobs/take", "/jobs/nobody"])
async def test_an_answer_to_head_is_headers_alone(peer: Peer, path: str) -> None:
    peer.send(peer.headers(1, changed(GET, method="HEAD", path=path)))
    answer = await peer.answer(1)
    assert answer.status in (200, 404)
    assert names(answer) == ["HeadersFrame"]


async def test_a_body_may_come_in_padded_and_empty_frames(peer: Peer) -> None:
    peer.send(
        peer.headers(1, POST, OPEN),
        DataFrame(1, BODY[:10], pad_length=100, flags=["PADDED"]),
        DataFrame(1, b""),
        DataFrame(1, BODY[10:]),
        DataFrame(1, b"", flags=["END_STREAM"]),
    )
    assert (await peer.answer(1)).status == 201


async def test_trailers_are_tolerated(peer: Peer) -> None:
    peer.send(peer.headers(1, POST, OPEN), DataFrame(1, BODY), peer.headers(1, [("x-sum", "1")]))
    assert (await peer.answer(1)).status == 201


async def test_a_body_with_trailers_has_the_size_that_it_announced(peer: Peer) -> None:
    trailers = [("x-sum", "1")]
    for number, more in ((1, 1), (3, 0)):
        head = [*POST, ("content-length", str(len(BODY) + more))]
        peer.send(peer.headers(number, head, OPEN), DataFrame(number, BODY))
        peer.send(peer.headers(number, trailers))
    assert (await peer.answer(1)).reset == ErrorCodes.PROTOCOL_ERROR
    assert (await peer.answer(3)).status == 201
    assert json.loads((await peer.get(5, "/jobs/count")).body) == {"count": 1}


@pytest.mark.settings(max_body=1000, max_inbox_bytes=1000)
async def test_a_body_cut_short_by_trailers_holds_no_memory(peer: Peer) -> None:
    head = [*POST, ("content-length", "1000"), ("expect", "100-continue")]
    peer.send(peer.headers(1, head, OPEN))
    await peer.until(HeadersFrame, 1)
    peer.send(DataFrame(1, BODY), peer.headers(1, [("x-sum", "1")]))
    assert (await peer.answer(1)).reset == ErrorCodes.PROTOCOL_ERROR
    peer.send(peer.headers(3, POST, OPEN), DataFrame(3, BODY, flags=["END_STREAM"]))
    assert (await peer.answer(3)).status == 201


async def test_headers_may_come_in_continuation_frames(peer: Peer) -> None:
    block = peer.encoder.encode(GET)
    peer.send(
        HeadersFrame(1, block[:3], flags=["END_STREAM"]),
        ContinuationFrame(1, block[3:5]),
        ContinuationFrame(1, block[5:], flags=["END_HEADERS"]),
    )
    assert (await peer.answer(1)).status == 200


async def test_a_body_that_waits_to_be_asked_for_is_asked_for(peer: Peer) -> None:
    peer.send(peer.headers(1, [*POST, ("expect", "100-continue")], OPEN))
    await peer.until(HeadersFrame, 1)
    assert peer.fields == {":status": "100"}
    peer.send(DataFrame(1, BODY, flags=["END_STREAM"]))
    assert (await peer.answer(1)).status == 201


@pytest.mark.settings(max_body=100)
async def test_no_body_is_asked_for_that_is_certain_to_be_refused(peer: Peer) -> None:
    for number, (status, more) in enumerate(
        [(413, ("content-length", "101")), (415, ("content-type", "text/plain"))]
    ):
        peer.send(peer.headers(2 * number + 1, [*POST, ("expect", "100-continue"), more], OPEN))
        answer = await peer.answer(2 * number + 1)
        assert answer.status == status
        assert names(answer).count("HeadersFrame") == 1


@pytest.mark.settings(access_log="all")
async def test_the_access_log_tells_of_http_2_too(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "zq.api.primary")
    await peer.get(1, "/jobs/nobody")
    await peer.ping()
    (line,) = [record for record in caplog.records if record.name == "zq.api.primary"]
    fields = line.__dict__["fields"]
    told = (fields["method"], fields["path"], fields["status"])
    assert told == ("GET", "/jobs/nobody", 404)


# Windows


async def test_no_more_is_sent_than_the_stream_window_allows(site: Site) -> None:
    async with await Peer.open(site.port, settings={SettingCodes.INITIAL_WINDOW_SIZE: 10}) as peer:
        peer.send(peer.headers(1))
        first = await peer.until(DataFrame, 1)
        assert len(first.data) == 10  # type: ignore[attr-defined]
        assert (await peer.get(3, "/jobs/nobody")).status == 404  # others go on
        await peer.ping()
        peer.send(WindowUpdateFrame(1, 1000))
        rest = await peer.answer(1)
        assert rest.ended
        assert json.loads(first.data + rest.body)["status"] == "ok"  # type: ignore[attr-defined]


async def test_a_window_that_the_settings_shrink_below_zero_opens_again(site: Site) -> None:
    async with await Peer.open(site.port, settings={SettingCodes.INITIAL_WINDOW_SIZE: 10}) as peer:
        peer.send(peer.headers(1))
        first = await peer.until(DataFrame, 1)
        peer.send(SettingsFrame(0, {SettingCodes.INITIAL_WINDOW_SIZE: 0}))
        peer.send(WindowUpdateFrame(1, 10))
        await peer.ping()
        peer.send(WindowUpdateFrame(1, 1))
        second = await peer.until(DataFrame, 1)
        assert (len(first.data), len(second.data)) == (10, 1)  # type: ignore[attr-defined]
        peer.send(SettingsFrame(0, {SettingCodes.INITIAL_WINDOW_SIZE: 65_535}))
        assert (await peer.answer(1)).ended


async def test_a_finished_request_gives_its_whole_window_back(peer: Peer) -> None:
    block = b"x" * 16_000
    returned = 0
    for number in range(1, 400, 2):  # more than the connection's window holds in all
        peer.send(
            peer.headers(number, changed(POST, path="/nope"), OPEN),
            DataFrame(number, block, flags=["END_STREAM"]),
        )
        while True:
            frame = await peer.frame()
            if isinstance(frame, WindowUpdateFrame) and frame.stream_id == 0:
                returned += frame.window_increment
            if frame.stream_id == number and "END_STREAM" in frame.flags:
                break
    assert returned > 200 * len(block) - 2**20


# Ends


@pytest.mark.settings(max_body=1000)
async def test_a_body_over_the_limit_gets_its_413_and_is_not_waited_for(
    site: Site, peer: Peer
) -> None:
    peer.send(peer.headers(1, [*POST, ("content-length", "100000")], OPEN))
    answer = await peer.answer(1)
    assert (answer.status, answer.ended, answer.reset) == (413, True, None)
    peer.send(DataFrame(1, b"on its way already"))
    assert (await peer.get(3)).status == 200
    site.clock.advance(10_000)
    reset = await peer.until(RstStreamFrame, 1)
    assert reset.error_code == ErrorCodes.NO_ERROR  # type: ignore[attr-defined]


@pytest.mark.settings(max_body=1000)
async def test_a_body_that_nobody_wants_may_come_to_its_end(site: Site, peer: Peer) -> None:
    block = b"x" * 16_000
    peer.send(peer.headers(1, [*POST, ("content-length", str(50 * len(block)))], OPEN))
    assert (await peer.answer(1)).status == 413
    for number in range(1, 50):
        peer.send(DataFrame(1, block))
        while number * len(block) - peer.windows[1] > STREAM_WINDOW - len(block):
            await peer.frame()
    peer.send(DataFrame(1, block, flags=["END_STREAM"]))
    assert (await peer.get(3)).status == 200
    site.clock.advance(10_000)
    answer = await peer.get(5)
    assert (answer.status, answer.reset) == (200, None)


async def test_a_stopping_server_finishes_what_runs_and_then_says_goaway(site: Site) -> None:
    async with await Peer.open(site.port) as peer:
        peer.send(peer.headers(1, changed(GET, path="/jobs/take")))
        await peer.until(HeadersFrame, 1)
        await site.stop()
        last, goaway = await peer.frame(), await peer.frame()
        assert isinstance(last, DataFrame)
        assert isinstance(goaway, GoAwayFrame)
        assert (goaway.error_code, goaway.last_stream_id) == (ErrorCodes.NO_ERROR, 1)
        assert "END_STREAM" in last.flags
        await peer.closed()


async def test_a_client_that_says_goaway_still_gets_its_answers(peer: Peer) -> None:
    peer.send(peer.headers(1, POST, OPEN), GoAwayFrame(0, error_code=0))
    peer.send(DataFrame(1, BODY, flags=["END_STREAM"]))
    answer = await peer.answer(1)
    assert (answer.status, answer.ended) == (201, True)
