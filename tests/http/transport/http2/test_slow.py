"""An incomplete head ends its connection; a connection between requests may rest."""

import asyncio

import pytest
from conformance.site import Site
from h2.errors import ErrorCodes

from .peer import GET, PREFACE, Ended, Peer, changed

HEADER_TIMEOUT_S = 10
REST_MS = 1_000_000


async def seconds_until_goaway(site: Site, peer: Peer) -> int:
    """How long the server waits before it says that it will not."""
    goaway = asyncio.create_task(peer.goaway())
    seconds = 0
    while not goaway.done():
        site.clock.advance(1_000)
        seconds += 1
        assert seconds < 100
        await asyncio.wait([goaway], timeout=0.01)
    assert await goaway == ErrorCodes.ENHANCE_YOUR_CALM
    return seconds


@pytest.mark.parametrize("part", ["first frame", "rest of a frame", "next frame"])
async def test_a_head_that_is_not_whole_in_time(site: Site, peer: Peer, part: str) -> None:
    flags = () if part == "next frame" else ("END_HEADERS",)
    head = peer.headers(1, flags=(*flags, "END_STREAM")).serialize()
    peer.send({"first frame": head[:5], "rest of a frame": head[:-1], "next frame": head}[part])
    assert await seconds_until_goaway(site, peer) >= HEADER_TIMEOUT_S
    await peer.closed()


async def test_a_head_in_two_pieces_is_served(site: Site, peer: Peer) -> None:
    head = peer.headers(1, changed(GET, path="/health")).serialize()
    peer.send(head[:-1])
    await peer.writer.drain()
    site.clock.advance(HEADER_TIMEOUT_S * 1000 - 1)
    peer.send(head[-1:])
    assert (await peer.answer(1)).status == 200
    site.clock.advance(REST_MS)
    assert (await peer.get(3)).status == 200


async def test_a_connection_without_requests_may_rest(site: Site, peer: Peer) -> None:
    await peer.ping()
    site.clock.advance(REST_MS)
    assert (await peer.get(1)).status == 200


async def test_half_a_preface_is_not_waited_for(site: Site) -> None:
    async with await Peer.open(site.port, preface=PREFACE[:10]) as peer:
        peer.send(PREFACE[:10])
        ended = asyncio.create_task(peer.frame())
        while not ended.done():
            site.clock.advance(1_000)
            await asyncio.wait([ended], timeout=0.01)
        with pytest.raises(Ended):
            await ended
