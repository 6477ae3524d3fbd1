"""The connections of gRPC: they count among those of the server, and have its times."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from conformance.metrics import Scraper
from conformance.raw import RawConnection, RawReply
from conformance.site import Site
from grpc import aio

from zq.doors.queue_ti.http.rpc import links
from zq.http.transport.h2.frames import PREFACE

from .rpc import PATIENCE_S, rpc_of

HEALTH = b"GET /health HTTP/1.1\r\nHost: q\r\n\r\n"
HEADER_TIMEOUT_MS = 10_000


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"grpc_port": 0, "max_connections": 6, "max_streams_per_peer": 1}


@pytest.fixture
async def scrape(site: Site) -> Any:
    """Metrics over a connection that is open before any other."""
    async with await RawConnection.open(site.port) as connection:
        yield Scraper(connection)


async def opened(site: Site, source: str = "127.0.0.1") -> RawConnection:
    assert site.server.ports["grpc"] is not None
    return await RawConnection.open(site.server.ports["grpc"], source=source)


async def closed(connections: list[RawConnection]) -> None:
    """Close connections that the server may have reset."""
    for connection in connections:
        with contextlib.suppress(ConnectionResetError):
            await connection.close()


async def health(site: Site) -> RawReply:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(HEALTH)
        return await connection.reply()


async def test_a_channel_is_one_of_the_connections(site: Site, scrape: Scraper) -> None:
    async with rpc_of(site) as rpc:
        await rpc.enqueue("t")
        assert (await scrape())["zq_connections"] == 2
    await scrape.until(lambda m: m["zq_connections"] == 1)


async def test_idle_ones_shut_nobody_out(site: Site, scrape: Scraper) -> None:
    silent = [await opened(site) for _ in range(20)]
    await scrape.until(lambda m: m["zq_connections_accepted_total"] == 21)
    assert (await scrape())["zq_connections"] <= 4
    assert (await health(site)).status == 200
    async with rpc_of(site) as rpc:
        await rpc.enqueue("t")
    await closed(silent)


async def test_one_with_a_call_keeps_its_place(site: Site, scrape: Scraper) -> None:
    async with rpc_of(site) as rpc:
        stream = rpc.subscribe("t")
        await stream.wait_for_connection()
        silent = [await opened(site) for _ in range(20)]
        await scrape.until(lambda m: m["zq_connections_accepted_total"] == 22)
        await rpc.enqueue("t", b"hello")
        assert (await stream.read()).payload == b"hello"
    await closed(silent)


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"max_connections": 1}, b"--max-connections permits"),
        ({"max_connections_per_peer": 1}, b"--max-connections-per-peer permits"),
    ],
)
async def test_one_too_many_is_told_of_the_limit(
    site: Site, limits: dict[str, int], limit: bytes
) -> None:
    await site.restart(**limits)
    async with await RawConnection.open(site.port) as other:
        await other.send(HEALTH)
        assert (await other.reply()).status == 200
        async with await opened(site) as connection:
            await connection.send(PREFACE)
            assert limit in await connection.rest()


async def test_a_listener_full_of_calls_names_its_own_limit(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    await site.restart(max_connections=2)
    async with rpc_of(site) as rpc:
        stream = rpc.subscribe("t")
        await stream.wait_for_connection()
        async with await opened(site) as connection:
            await connection.send(PREFACE)
            assert b"as the gRPC listener takes (1): close some" in await connection.rest()
    (line,) = [each for each in caplog.records if each.message == "connections refused"]
    assert vars(line)["fields"]["limit"] == "gRPC listener"


@pytest.mark.parametrize("begun", [b"", PREFACE[:9]])
async def test_one_that_does_not_begin_is_closed(site: Site, scrape: Scraper, begun: bytes) -> None:
    async with await opened(site) as connection:
        await connection.send(begun)
        await scrape.until(lambda m: m["zq_connections"] == 2)
        site.clock.advance(HEADER_TIMEOUT_MS)
        assert await connection.rest() == b""
    metrics = await scrape.until(lambda m: m["zq_connections"] == 1)
    assert metrics["zq_refusals_total", "header_timeout"] == 1


async def test_another_protocol_is_told_what_is_spoken_here(site: Site) -> None:
    async with await opened(site) as connection:
        await connection.send(HEALTH)
        reply = await connection.reply()
    assert (reply.status, "speaks gRPC only" in reply.doc["error"]) == (400, True)


async def test_the_address_of_a_client_is_known_behind_its_channel(site: Site) -> None:
    async with rpc_of(site) as rpc, rpc_of(site) as second:
        stream = rpc.subscribe("t")
        await stream.wait_for_connection()
        with pytest.raises(aio.AioRpcError, match="this address has as many subscriptions"):
            await second.subscribe("t").read()


def no_descriptors(*_: object) -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize(
    "change",
    [
        ("socket", SimpleNamespace(AF_UNIX=socket.AF_UNIX, socket=no_descriptors)),
        ("LIBRARY", "nothing-listens-here"),
    ],
    ids=["no-descriptors", "no-listener"],
)
async def test_one_that_cannot_be_passed_on_is_closed(
    site: Site,
    scrape: Scraper,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: tuple[str, object],
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(links, *change)
        async with await opened(site) as connection, asyncio.timeout(PATIENCE_S):
            await connection.send(PREFACE)
            with contextlib.suppress(ConnectionResetError):
                assert await connection.rest() == b""
    await scrape.until(lambda m: m["zq_connections"] == 1)
    (told,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert told.message == "a gRPC connection was not passed on"
    async with rpc_of(site) as rpc:
        await rpc.enqueue("t")


async def test_connections_end_with_the_server(site: Site) -> None:
    silent, begun = await opened(site), await opened(site)
    await begun.send(PREFACE + bytes.fromhex("000000040000000000"))
    async with rpc_of(site) as rpc:
        await rpc.enqueue("t")
        await site.stop()
    for connection in (silent, begun):
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionResetError):
                await connection.rest()
    await closed([silent, begun])
    await site.start()


async def test_a_message_larger_than_all_buffers_comes_through(site: Site) -> None:
    payload = b"x" * 700_000
    async with rpc_of(site) as rpc:
        await rpc.enqueue("t", payload)
        assert (await rpc.dequeue("t")).payload == payload
