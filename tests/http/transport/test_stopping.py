"""Connections while a listener stops: late ones are closed, and bodies under way are read."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable

import pytest
import uvloop
from aiohttp import web
from http2.serving import serve

from zq.http.transport.answer import Answer

PATIENCE_S = 60.0
ENOUGH_TURNS = 8
"""Of the event loop, from a connection to the first bytes that it sends."""

Loops = Callable[[], asyncio.AbstractEventLoop]


async def nothing(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response()


async def ends_before_a_stop(turns: int) -> bytes:
    """What a client gets that connects so many turns of the loop before its listener stops."""
    loop = asyncio.get_running_loop()
    async with serve("h2", nothing) as port:
        client = socket.create_connection(("127.0.0.1", port))
        for _ in range(turns):
            await asyncio.sleep(0)
    client.setblocking(False)
    with client:
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await loop.sock_recv(client, 1)
            except ConnectionResetError:
                return b""


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_stop_closes_a_connection_that_was_just_accepted(new_loop: Loops) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for turns in range(ENOUGH_TURNS):
            with asyncio.Runner(loop_factory=new_loop) as runner:
                assert runner.run(ends_before_a_stop(turns)) == b"", turns
        gc.collect()


@pytest.mark.parametrize("length", [10, 1_000_000])
async def test_race_a_body_that_is_half_sent_when_a_listener_stops(length: int) -> None:
    arrived = asyncio.Event()

    async def count(request: web.BaseRequest) -> Answer:
        arrived.set()
        return Answer(200, str(len(await request.read())).encode())

    async with asyncio.timeout(PATIENCE_S), serve("h2", count, patience=PATIENCE_S) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST / HTTP/1.1\r\nhost: zq\r\ncontent-length: {length}\r\n\r\n"
        writer.write(head.encode() + b"1")
        await arrived.wait()
        asyncio.get_running_loop().call_later(0.1, writer.write, b"2" * (length - 1))
    said = await reader.read()
    assert said.startswith(b"HTTP/1.1 200"), said
    assert said.endswith(str(length).encode())
    assert b"connection: close" in said.lower()
    writer.close()
