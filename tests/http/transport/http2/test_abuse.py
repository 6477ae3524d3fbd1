"""Floods end their connection with ENHANCE_YOUR_CALM; the others notice nothing."""

from collections.abc import Callable, Sequence

import pytest
from conformance.client import JSON, Client
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

from zq.http.transport.abuse import BURST, PER_SECOND, AbuseLimits, Nuisance
from zq.http.transport.h2.frames import make

from .peer import GET, POST, Peer, changed

Flood = Callable[[Peer, int], Sequence[Frame | bytes]]

STREAMS = 200
OPEN = ("END_HEADERS",)
TAKE = changed(GET, path="/jobs/take")


# The count


def test_a_burst_is_allowed_once_and_earned_again_by_waiting() -> None:
    patience = AbuseLimits(0.0)
    assert all(patience.spend(Nuisance.PINGS, 0.0) for _ in range(BURST))
    assert not patience.spend(Nuisance.PINGS, 0.0)
    patience = AbuseLimits(0.0)
    for _ in range(BURST):
        patience.spend(Nuisance.PINGS, 0.0)
    assert all(patience.spend(Nuisance.PINGS, 1.0) for _ in range(PER_SECOND))
    assert not patience.spend(Nuisance.PINGS, 1.0)


def test_a_long_silence_earns_no_more_than_a_burst() -> None:
    patience = AbuseLimits(0.0)
    assert all(patience.spend(Nuisance.PEER_RESETS, 1e6) for _ in range(BURST))
    assert not patience.spend(Nuisance.PEER_RESETS, 1e6)


def test_nuisances_are_counted_apart() -> None:
    patience = AbuseLimits(0.0)
    for _ in range(BURST):
        patience.spend(Nuisance.PINGS, 0.0)
    assert patience.spend(Nuisance.SETTINGS, 0.0)


# Streams


async def test_a_stream_too_many_is_refused_and_the_others_go_on(peer: Peer) -> None:
    numbers = range(1, 2 * STREAMS, 2)
    peer.send(*(peer.headers(number, TAKE) for number in numbers))
    for _ in numbers:
        await peer.until(HeadersFrame)
    extra = 2 * STREAMS + 1
    refused = await peer.get(extra)
    assert (refused.status, refused.reset) == (0, ErrorCodes.REFUSED_STREAM)
    peer.send(RstStreamFrame(1, ErrorCodes.CANCEL))
    await peer.ping()
    assert (await peer.get(extra + 2)).status == 200


async def test_a_hundred_refusals_leave_every_open_stream_alone(site: Site) -> None:
    async with await Peer.open(site.port) as peer, Client(site, JSON) as client:
        numbers = range(1, 2 * STREAMS, 2)
        peer.send(*(peer.headers(number, TAKE) for number in numbers))
        for _ in numbers:
            await peer.until(HeadersFrame)
        peer.send(*(peer.headers(number) for number in range(401, 601, 2)))
        for _ in range(100):
            await peer.until(RstStreamFrame)
        await client.enqueue_many(STREAMS)
        delivered = {(await peer.until(DataFrame)).stream_id for _ in numbers}
        assert delivered == set(numbers)


# Floods


def rapid_reset(peer: Peer, number: int) -> list[Frame]:
    return [peer.headers(number, TAKE), RstStreamFrame(number, ErrorCodes.CANCEL)]


def made_you_reset(peer: Peer, number: int) -> list[Frame]:
    return [peer.headers(number, TAKE), WindowUpdateFrame(number, 2**31 - 1)]


def refusals(peer: Peer, number: int) -> list[Frame]:
    return [peer.headers(number, TAKE)]


def pings(peer: Peer, number: int) -> list[Frame]:
    return [PingFrame(0, b"\0" * 8)]


def settings(peer: Peer, number: int) -> list[Frame]:
    return [SettingsFrame(0, {SettingCodes.INITIAL_WINDOW_SIZE: 65_535})]


def priorities(peer: Peer, number: int) -> list[Frame]:
    return [PriorityFrame(number)]


def empty_data(peer: Peer, number: int) -> list[Frame]:
    if number == 1:
        return [peer.headers(1, POST, OPEN)]
    return [DataFrame(1, b"")]


def tiny_data(peer: Peer, number: int) -> list[Frame]:
    if number == 1:
        return [peer.headers(1, POST, OPEN)]
    return [DataFrame(1, b"x")]


def windows(peer: Peer, number: int) -> list[Frame]:
    return [WindowUpdateFrame(0, 1)]


def windows_of_a_stream(peer: Peer, number: int) -> list[Frame]:
    if number == 1:
        return [peer.headers(1, TAKE)]
    return [WindowUpdateFrame(1, 1)]


def goaways(peer: Peer, number: int) -> list[Frame]:
    return [GoAwayFrame(0)]


def unknown(peer: Peer, number: int) -> list[Frame | bytes]:
    return [make(77)]


FLOODS: list[Flood] = [
    rapid_reset,
    made_you_reset,
    refusals,
    pings,
    settings,
    priorities,
]
FLOODS += [empty_data, tiny_data, windows, windows_of_a_stream, goaways, unknown]


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_ends_its_connection(site: Site, flood: Flood) -> None:
    async with await Peer.open(site.port) as peer, Client(site, JSON) as client:
        await client.enqueue_many(5)
        for number in range(1, 2 * (BURST + STREAMS + 100), 2):
            peer.send(*flood(peer, number))
        assert await peer.goaway() == ErrorCodes.ENHANCE_YOUR_CALM
        await peer.closed()
        await client.until_count(5, status="ready")
        assert (await client.get("/health")).status == 200


@pytest.mark.parametrize("flood", FLOODS)
async def test_what_an_honest_client_does_now_and_then_is_no_flood(
    site: Site, flood: Flood
) -> None:
    async with await Peer.open(site.port) as peer:
        for number in range(1, 1200, 2):
            peer.send(*flood(peer, number))
        await peer.ping()


async def test_requests_that_bring_their_priority_are_no_flood(peer: Peer) -> None:
    flags = ["END_HEADERS", "END_STREAM", "PRIORITY"]
    for number in range(1, 2 * (BURST + 100), 2):
        peer.send(HeadersFrame(number, peer.encoder.encode(GET), flags=flags, stream_weight=15))
        assert (await peer.answer(number)).status == 200


async def test_two_windows_for_each_frame_of_the_server_are_no_flood(peer: Peer) -> None:
    for number in range(1, 2 * (BURST + 100), 2):
        peer.send(peer.headers(number, changed(GET, path="/health")))
        await peer.until(DataFrame)
        peer.send(WindowUpdateFrame(0, 50), WindowUpdateFrame(0, 50))
    await peer.ping()


async def test_too_many_continuation_frames_end_the_connection(peer: Peer) -> None:
    peer.send(HeadersFrame(1, peer.encoder.encode(GET)))
    peer.send(*(ContinuationFrame(1, b"") for _ in range(100)))
    assert await peer.goaway() == ErrorCodes.ENHANCE_YOUR_CALM
    await peer.closed()


async def test_a_header_list_over_its_limit_ends_the_connection(peer: Peer) -> None:
    # With a table, each is a byte or two on the wire once the first is in it.
    peer.send(*peer.blocks(1, [*GET, *[("x-bomb", "y" * 2000)] * 70]))
    assert await peer.goaway() == ErrorCodes.ENHANCE_YOUR_CALM
    await peer.closed()


async def test_a_peer_that_reads_no_answers_is_cut_off(site: Site) -> None:
    async with await Peer.open(site.port) as peer, Client(site, JSON) as client:
        peer.send(peer.headers(1, TAKE))
        await peer.until(HeadersFrame)
        # Answers that no window holds back: they fill the transport, then requests are refused.
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.enqueue()
        nobody = changed(GET, path="/jobs/nobody")
        for first in range(3, 200_000, 1_000):
            peer.send(*(peer.headers(number, nobody) for number in range(first, first + 1_000, 2)))
            await client.count()
            if peer.writer.transport.is_closing():
                break
        await client.until_count(1, status="ready")
