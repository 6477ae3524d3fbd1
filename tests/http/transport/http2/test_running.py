"""Handlers and their streams: which count as running, and back-pressure both ways."""

import asyncio

from aiohttp import web
from conformance.http2 import Http2Connection
from h2.errors import ErrorCodes
from hyperframe.frame import DataFrame, RstStreamFrame, WindowUpdateFrame
from tiers import sizes

from zq.http.transport.h2.codec import CONNECTION_WINDOW, MAX_STREAMS, STREAM_WINDOW

from .peer import GET, POST, Peer, changed
from .serving import Serving

OPEN = ("END_HEADERS",)
MIB = 2**20


async def test_a_reset_stream_counts_until_its_handler_has_ended(serving: Serving) -> None:
    going, may_end = asyncio.Event(), asyncio.Event()

    async def stubborn(request: web.BaseRequest) -> web.Response:
        if request.path == "/health":
            return web.Response()
        try:
            await asyncio.Event().wait()
        finally:
            going.set()
            await may_end.wait()
        raise AssertionError

    async with serving(stubborn) as port, await Peer.open(port) as peer:
        for number in range(1, 2 * MAX_STREAMS, 2):
            peer.send(peer.headers(number, changed(GET, path="/slow")))
        await peer.ping()
        peer.send(*(RstStreamFrame(number, 8) for number in range(1, 2 * MAX_STREAMS, 2)))
        await going.wait()
        refused = await peer.get(401)
        assert refused.reset == ErrorCodes.REFUSED_STREAM
        may_end.set()
        number = 403
        while (await peer.get(number)).status != 200:
            number += 2


async def test_a_handler_is_cancelled_with_its_stream(serving: Serving) -> None:
    ended: asyncio.Queue[type[BaseException] | None] = asyncio.Queue()
    begun = asyncio.Event()

    async def waiting(request: web.BaseRequest) -> web.Response:
        begun.set()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            ended.put_nowait(type(error))
            raise
        raise AssertionError

    async with serving(waiting) as port, await Peer.open(port) as peer:
        peer.send(peer.headers(1))
        await begun.wait()
        peer.send(RstStreamFrame(1, ErrorCodes.CANCEL))
        assert await ended.get() is asyncio.CancelledError
        begun.clear()
        peer.send(peer.headers(3))
        await begun.wait()
        peer.writer.transport.abort()
        assert await ended.get() is asyncio.CancelledError


async def test_a_handler_that_fails_resets_its_stream(serving: Serving) -> None:
    async def broken(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"so far")
        raise ConnectionResetError

    async with serving(broken) as port, await Peer.open(port) as peer:
        answer = await peer.get(1)
        assert (answer.body, answer.ended) == (b"so far", False)
        assert answer.reset == ErrorCodes.INTERNAL_ERROR


async def test_a_body_that_nobody_reads_is_held_back_by_its_window(serving: Serving) -> None:
    go_on = asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.Response:
        await go_on.wait()
        return web.Response(text=str(len(await request.read())))

    async with serving(slow) as port, await Peer.open(port) as peer:
        peer.send(peer.headers(1, POST, OPEN))
        sent = 0
        while sent < STREAM_WINDOW:
            peer.send(DataFrame(1, b"x" * 16_384))
            sent += 16_384
        await peer.ping()  # no window has come so far, else it would have been met
        assert peer.windows[1] == 0
        go_on.set()
        await peer.until(WindowUpdateFrame, 1)
        peer.send(DataFrame(1, b"", flags=["END_STREAM"]))
        assert (await peer.answer(1)).body == str(sent).encode()
        assert sent < CONNECTION_WINDOW


async def test_a_response_that_nobody_reads_waits_and_slows_no_other(serving: Serving) -> None:
    written = 0

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal written
        if request.path == "/health":
            return web.Response(body=b"x" * 1000)
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * MIB)
            written += MIB

    async with serving(endless) as port, await Peer.open(port) as peer:
        peer.send(WindowUpdateFrame(0, 2**30))
        peer.send(peer.headers(1, changed(GET, path="/endless")))
        for number in range(3, 40, 2):
            assert len((await peer.get(number)).body) == 1000
        assert written == 0


@sizes("mib", 20, 100)
async def test_many_windows_full_go_up_and_down(serving: Serving, mib: int) -> None:
    assert mib * MIB > 10 * CONNECTION_WINDOW

    async def echo(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for chunk in request.content.iter_any():
            await response.write(chunk)
        return response

    async with serving(echo) as port:
        connection = await Http2Connection.open(port, window=2**18)
        exchange = connection.request("POST", "/", [], end=False)
        block = bytes(range(256)) * 4096

        async def upload() -> None:
            for number in range(1, mib + 1):
                await exchange.send(block, end=number == mib)

        uploading = asyncio.create_task(upload())
        received = 0
        while data := await exchange.chunk():
            assert data == (block + block)[received % MIB : received % MIB + len(data)]
            received += len(data)
        await uploading
        assert received == mib * MIB
        await connection.close()


async def test_large_responses_share_a_connection_fairly(serving: Serving) -> None:
    async def large(request: web.BaseRequest) -> web.Response:
        return web.Response(body=bytes(4 * MIB))

    async with serving(large) as port:
        connection = await Http2Connection.open(port)
        exchanges = [connection.request("GET", "/", [], end=True) for _ in range(4)]
        bodies = [asyncio.create_task(each.body()) for each in exchanges]
        _, pending = await asyncio.wait(bodies, return_when=asyncio.FIRST_COMPLETED)
        # Sent one after the other, three would have nothing yet.
        assert all(exchange.received_bytes > MIB for exchange in exchanges)
        for body in bodies:
            assert len(await body) == 4 * MIB
        del pending
        await connection.close()
