"""Garbage on the wire of a real server: each connection ends or is answered, the others go on."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from conformance.client import new_job
from conformance.raw import RawConnection
from h2.config import H2Configuration
from h2.connection import H2Connection
from process.server import ServerProcess, running

from .lives import seed

SILENCE_S = 0.05
"""A server may wait for more after this; what is sent next goes on another connection."""

BODY = json.dumps(new_job(payload={"n": 1})).encode()
HEADERS = b"Host: localhost\r\nContent-Type: application/json\r\n"
HTTP1 = (
    b"POST /jobs HTTP/1.1\r\n" + HEADERS + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    b"POST /jobs HTTP/1.1\r\n"
    + HEADERS
    + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    b"GET /jobs/take?prefetch=3&queue=a,b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /jobs?status=ready&limit=3 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2,
)

HTTP2_HEADERS = [
    *((":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/jobs")),
    ("content-type", "application/json"),
]


def http2() -> bytes:
    """A connection's whole side of a conversation: a job, a stream of jobs, a window, a ping."""
    connection = H2Connection(H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    connection.send_headers(1, HTTP2_HEADERS)
    connection.send_data(1, BODY, end_stream=True)
    take = [(":method", "GET"), *HTTP2_HEADERS[1:3], (":path", "/jobs/take?prefetch=3&queue=a")]
    connection.send_headers(3, take, end_stream=True)
    connection.increment_flow_control_window(1_000, 3)
    connection.ping(b"12345678")
    return connection.data_to_send()


def examples(usual: int) -> int:
    return int(os.environ.get("CRASH_FUZZ") or usual)


def damaged(random: Random, sound: bytes) -> bytes:
    """Replace, leave out, put in or repeat some bytes, or stop early."""
    data = bytearray(sound)
    for _ in range(random.randint(1, 5)):
        place = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data[place : place + 1] = random.randbytes(1)
            case 1:
                del data[place : place + random.randint(1, 8)]
            case 2:
                data[place:place] = random.randbytes(random.randint(1, 8))
            case 3:
                data[place:place] = data[place : place + random.randint(1, 40)]
            case _ if place:
                del data[place:]
    return bytes(data)


async def provoke(server: ServerProcess, data: bytes) -> None:
    """Send bytes, listen for a moment, hang up."""
    async with await RawConnection.open(server.port) as connection:
        try:
            await connection.send(data)
            async with asyncio.timeout(SILENCE_S):
                await connection.rest()
        except (TimeoutError, ConnectionError):
            return


async def bombard(server: ServerProcess, random: Random, sound: Sequence[bytes]) -> None:
    for _ in range(examples(300) // 10):
        data = [damaged(random, random.choice(sound)) for _ in range(10)]
        await asyncio.gather(*(provoke(server, each) for each in data))


@pytest.mark.parametrize("sound", [HTTP1, (http2(),)], ids=["HTTP/1.1", "HTTP/2"])
async def test_garbage_harms_nobody_but_its_sender(sound: Sequence[bytes], tmp_path: Path) -> None:
    async with running(tmp_path) as server, server.client() as client:
        held = await client.in_flight(queue="held")
        await bombard(server, Random(seed()), sound)

        await client.succeed(held["id"])
        assert (await client.get("/health")).status == 200
        await client.until_count(0, status="in_flight")
        levels = {line["level"] for line in server.log}
        assert not levels & {"ERROR", "CRITICAL"}, server.raw_log
        assert server.errors == b""
