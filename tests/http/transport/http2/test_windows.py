"""The limits of a connection over all its streams, however many there are."""

import asyncio

import pytest
from aiohttp import web
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import DataFrame, HeadersFrame, SettingsFrame, WindowUpdateFrame

from zq.http.transport.h2.codec import CONNECTION_WINDOW, STREAM_WINDOW

from .peer import MAX_FRAME, POST, Peer, changed
from .serving import Serving

OPEN = ("END_HEADERS",)
MANY = range(1, 2 * 150, 2)
DEFAULT_WINDOW = 65_535


async def test_the_connections_window_holds_for_all_streams_together(serving: Serving) -> None:
    async def thousand(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with serving(thousand) as port, await Peer.open(port) as peer:
        peer.send(*(peer.headers(number) for number in MANY))
        sizes = dict.fromkeys(MANY, 0)

        async def read(expected: int) -> None:
            while sum(sizes.values()) < expected:
                frame = await peer.until(DataFrame)
                assert isinstance(frame, DataFrame)
                sizes[frame.stream_id] += len(frame.data)

        await read(DEFAULT_WINDOW)
        peer.send(WindowUpdateFrame(0, 10))
        await read(DEFAULT_WINDOW + 10)
        await peer.ping()
        assert sum(sizes.values()) == DEFAULT_WINDOW + 10
        peer.send(WindowUpdateFrame(0, 10**6))
        await read(1000 * len(MANY))
        assert set(sizes.values()) == {1000}


async def test_settings_reach_every_open_stream(serving: Serving) -> None:
    async def short(request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"xyz")

    nothing: dict[int, int] = {SettingCodes.INITIAL_WINDOW_SIZE: 0}
    async with serving(short) as port, await Peer.open(port, settings=nothing) as peer:
        peer.send(*(peer.headers(number) for number in MANY))
        for _ in MANY:
            await peer.until(HeadersFrame)
        peer.send(SettingsFrame(0, {SettingCodes.INITIAL_WINDOW_SIZE: 1}))
        first = [await peer.until(DataFrame) for _ in MANY]
        assert {frame.stream_id for frame in first} == set(MANY)
        peer.send(SettingsFrame(0, {SettingCodes.INITIAL_WINDOW_SIZE: 100}))
        last = [await peer.until(DataFrame) for _ in MANY]
        assert all("END_STREAM" in frame.flags for frame in last)
        assert (await peer.get(MANY[-1] + 2)).body == b"xyz"


async def test_a_connection_bears_any_number_of_requests_beside_an_old_one(
    serving: Serving,
) -> None:
    go_on = asyncio.Event()

    async def handler(request: web.BaseRequest) -> web.Response:
        if request.path == "/old":
            await go_on.wait()
            return web.Response(text=await request.text())
        return web.Response(status=204)

    async with serving(handler) as port, await Peer.open(port) as peer:
        peer.send(peer.headers(1, changed(POST, path="/old"), OPEN), DataFrame(1, b"some "))
        number = 3
        for _ in range(42):
            batch = range(number, number + 200, 2)
            peer.send(*(peer.headers(each) for each in batch))
            number = batch.stop
            for _ in batch:
                assert "END_STREAM" in (await peer.until(HeadersFrame)).flags
        go_on.set()
        peer.send(DataFrame(1, b"more", flags=["END_STREAM"]))
        assert (await peer.answer(1)).body == b"some more"


@pytest.mark.parametrize(
    ("streams", "each"),
    [(1, STREAM_WINDOW), (5, CONNECTION_WINDOW // 5)],
    ids=["stream", "connection"],
)
async def test_a_body_beyond_its_window_ends_the_connection(
    serving: Serving, streams: int, each: int
) -> None:
    async def waits(request: web.BaseRequest) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(waits) as port, await Peer.open(port) as peer:
        for number in range(1, 2 * streams, 2):
            peer.send(peer.headers(number, POST, OPEN))
            for start in range(0, each, MAX_FRAME):
                peer.send(DataFrame(number, b"x" * min(MAX_FRAME, each - start)))
        await peer.ping()
        peer.send(DataFrame(1, b"x" * MAX_FRAME))
        assert await peer.goaway() == ErrorCodes.FLOW_CONTROL_ERROR
        await peer.closed()


async def test_a_body_that_is_read_may_go_on_for_ever(serving: Serving) -> None:
    async def counts(request: web.BaseRequest) -> web.Response:
        size = 0
        async for chunk in request.content.iter_any():
            size += len(chunk)
        return web.Response(text=str(size))

    blocks = 3 * CONNECTION_WINDOW // MAX_FRAME
    async with serving(counts) as port, await Peer.open(port) as peer:
        peer.send(peer.headers(1, POST, OPEN))
        for sent in range(1, blocks + 1):
            # The padding is given back too.
            peer.send(DataFrame(1, b"x" * (MAX_FRAME - 101), pad_length=100, flags=["PADDED"]))
            while (sent + 1) * MAX_FRAME > min(
                peer.windows[1] + STREAM_WINDOW, peer.windows[0] + DEFAULT_WINDOW
            ):
                await peer.frame()
        peer.send(DataFrame(1, b"", flags=["END_STREAM"]))
        assert (await peer.answer(1)).body == str(blocks * (MAX_FRAME - 101)).encode()
