"""Clients that finish sending after their request and wait for the answer (HTTP/1.1)."""

import asyncio

import pytest
from rooms import needs

from .client import JSON, Client, Wire
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may pause for longer than the server waits for whoever has finished sending."""
    monkeypatch.setattr("zq.http.transport.connection.HALF_CLOSED_S", PATIENCE_S)


@pytest.fixture
def wire() -> Wire:
    """None of this depends on the format."""
    return JSON


def request(method: str, path: str, body: bytes = b"", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = f"{method} {path} HTTP/1.1\r\nHost: q\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {size}\r\n\r\n".encode() + body


JOB = b'{"queue": "default", "type": "t", "payload": 1}'

TOPICS = needs("doors.topics")

REQUESTS = {
    "count": ("GET", "/jobs/count", b"", 200),
    "enqueue": ("POST", "/jobs", JOB, 201),
    "records": ("POST", "/v0/topics/t", b'{"records":[{"data":1}]}', 201),
    "message": ("POST", "/api/messages", b'{"topic":"o","payload":"eA=="}', 201),
    "health": ("GET", "/health", b"", 200),
    "unknown": ("GET", "/nowhere", b"", 404),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=TOPICS if name == "records" else ()) for name in REQUESTS],
)
async def test_the_answer_comes_and_then_the_end(site: Site, name: str) -> None:
    method, path, body, status = REQUESTS[name]
    async with await RawConnection.open(site.port) as connection:
        await connection.send(request(method, path, body))
        connection.half_close()
        assert (await connection.reply()).status == status
        assert await connection.rest() == b""


async def test_all_that_was_asked_is_answered(client: Client) -> None:
    async with await RawConnection.open(client.site.port) as connection:
        await connection.send(request("POST", "/jobs", JOB) * 50)
        connection.half_close()
        for _ in range(50):
            assert (await connection.reply()).status == 201
        assert await connection.rest() == b""
    assert await client.count() == 50


async def test_a_body_that_is_not_complete_is_refused(client: Client) -> None:
    async with await RawConnection.open(client.site.port) as connection:
        await connection.send(request("POST", "/jobs", JOB, length=1000))
        connection.half_close()
        reply = await connection.reply()
        assert (reply.status, reply.headers["zq-error"]) == (400, "broken_body")
        assert await connection.rest() == b""
    assert await client.count() == 0


async def test_a_chunk_that_is_none_is_refused_at_once(client: Client) -> None:
    head = b"POST /jobs HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with await RawConnection.open(client.site.port) as connection:
        await connection.send(head + b"5\r\nabcde\r\n")
        await client.count()
        await connection.send(b"nonsense\r\n")
        assert (await connection.reply()).status == 400
        assert await connection.rest() == b""


async def test_half_a_head_is_refused(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(b"GET /health HTTP/1.1\r\nHos")
        connection.half_close()
        assert (await connection.reply()).status == 400
        assert await connection.rest() == b""


@pytest.mark.parametrize("bytes_", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
async def test_what_is_not_http_is_answered_in_http_1_1(site: Site, bytes_: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(bytes_)
    assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
    writer.close()
