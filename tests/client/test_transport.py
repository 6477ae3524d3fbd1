"""Requests and answers on a connection: kept open, opened again, and lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from conformance.site import Site
from conformance.streams import PATIENCE_S

from bench.ports import free_port
from zq.client.backend import run
from zq.client.errors import InvalidOption
from zq.client.http.address import Address
from zq.client.http.aio import AioTransport
from zq.client.http.blocking import BlockingTransport
from zq.client.http.transport import Reply, Request, Transport, Unreachable

from .connections import COUNT, accepted


@pytest.fixture(params=[AioTransport, BlockingTransport], ids=["aio", "blocking"])
async def transport(site: Site, request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    made: Transport = request.param(Address(site.url))
    yield made
    await made.close()


async def send(transport: Transport, request: Request) -> Reply:
    if isinstance(transport, BlockingTransport):
        return await asyncio.to_thread(run, transport.send(request))
    return await transport.send(request)


async def test_one_connection_serves_many_requests(transport: Transport, site: Site) -> None:
    before = accepted(site)
    for _ in range(5):
        assert (await send(transport, COUNT)).status == 200

    assert accepted(site) == before + 1


@pytest.mark.settings(port=lambda _: free_port())
async def test_a_connection_that_has_ended_is_not_used_again(
    transport: Transport, site: Site
) -> None:
    request = Request("POST", "/jobs", b'{"queue":"q","type":"t","payload":1}')
    assert (await send(transport, request)).status == 201
    await site.restart()

    # It may have been stored or not, had it been sent on the old connection.
    assert (await send(transport, request)).status == 201


async def test_a_server_that_is_not_there_has_seen_nothing() -> None:
    for transport in (
        AioTransport(Address("http://127.0.0.1:1")),
        BlockingTransport(Address("http://127.0.0.1:1")),
    ):
        with pytest.raises(Unreachable) as gone:
            await send(transport, COUNT)
        assert not gone.value.sent
        assert gone.value.code == "unreachable"
        await transport.close()


async def test_a_server_that_says_nothing_may_have_seen_it() -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The first request opens the connection: all the time of the second is for its answer.
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    address = Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for transport in (AioTransport(address), BlockingTransport(address)):
        assert (await send(transport, Request("GET", "/"))).status == 200
        with pytest.raises(Unreachable) as silent:
            await send(transport, Request("GET", "/", timeout=0.05))
        assert silent.value.sent
        await transport.close()
    server.close()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[Address, list[bytes]]]:
    """A server of few words: one for each thing that it reads, which it writes down."""
    left, read = list(answers), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            read.append(data)
            writer.write(left.pop(0))
            if not left:
                break
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield (
        Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/at%20%C5%BE", "secret"),
        read,
    )
    server.close()


@pytest.mark.parametrize("kind", [AioTransport, BlockingTransport])
async def test_a_request_goes_out_whole_and_at_once(kind: Any) -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") as (address, read):
        transport = kind(address)
        assert (await send(transport, Request("POST", "/jobs?a=b", b"{}"))).body == b"ok"
        await transport.close()

    host = address.url.split("/")[2]
    assert read == [
        b"POST /at%20%C5%BE/jobs?a=b HTTP/1.1\r\n"
        b"Host: " + host.encode() + b"\r\nAccept: application/json\r\n"
        b"Zq-Strict: 1\r\n"
        b"Authorization: Bearer secret\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    ]


@pytest.mark.parametrize("kind", [AioTransport, BlockingTransport])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nto the end", 200, b"to the end"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, b"ab"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    ],
)
async def test_answers_come_as_proxies_put_them(
    kind: Any, answer: bytes, status: int, body: bytes
) -> None:
    async with answering(answer) as (address, _):
        transport = kind(address)
        got = await send(transport, COUNT)
        assert (got.status, got.body) == (status, body)
        await transport.close()


@pytest.mark.parametrize("kind", [AioTransport, BlockingTransport])
@pytest.mark.parametrize(
    "answer", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n."]
)
async def test_an_answer_that_is_none_or_ends_early_leaves_the_outcome_open(
    kind: Any, answer: bytes
) -> None:
    async with answering(answer) as (address, _):
        transport = kind(address)
        with pytest.raises(Unreachable) as broken:
            await send(transport, COUNT)
        assert broken.value.sent
        await transport.close()


async def test_who_gives_up_leaves_no_answer_for_the_next() -> None:
    asked, given_up = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"/first " in head:
            asked.set()
            await given_up.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n" + head[6:8])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    transport = AioTransport(Address(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    asking = asyncio.create_task(transport.send(Request("POST", "/first")))
    await asyncio.wait_for(asked.wait(), PATIENCE_S)
    asking.cancel()
    await asyncio.wait([asking])
    given_up.set()

    assert (await transport.send(Request("POST", "/second"))).body == b"se"
    await transport.close()
    server.close()


@pytest.mark.parametrize("token", ["", "a b", "secret\n", "ž"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Address("http://127.0.0.1:1", token)
    assert "secret" not in refused.value.message


def test_a_path_that_is_not_encoded_is_none() -> None:
    for path in ("/jobs/a b", "/jobs\r\nX: y", "/ž"):
        with pytest.raises(ValueError, match="not percent-encoded"):
            Address("http://127.0.0.1:1").written(Request("GET", path))
