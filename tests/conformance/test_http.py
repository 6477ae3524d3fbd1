"""The edges of HTTP/1.1: limits, malformed requests, connections that survive an error."""

import gzip
import json

import pytest

from .client import Client, new_job
from .raw import RawConnection, exchange
from .site import Site

KIB = 1024


def post_jobs(body: bytes, *headers: bytes) -> bytes:
    lines = [b"POST /jobs HTTP/1.1", b"Host: q", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def head_of(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def json_job(size: int) -> bytes:
    """An enqueue body of exactly `size` bytes."""
    empty = json.dumps(new_job(payload="")).encode()
    return json.dumps(new_job(payload="x" * (size - len(empty)))).encode()


@pytest.mark.settings(max_body=100 * KIB)
async def test_a_body_over_the_limit_is_413_in_the_accepted_format(client: Client) -> None:
    for target in ("/jobs", "/jobs/bulk", "/jobs/success", "/jobs/x/failure"):
        reply = await client.send("POST", target, b" " * (100 * KIB + 1))
        assert (reply.status, reply.media_type) == (413, client.wire.media_type), target
        assert reply.error


@pytest.mark.settings(max_body=100 * KIB)
async def test_a_body_of_exactly_the_limit_is_accepted(client: Client) -> None:
    reply = await client.send("POST", "/jobs", json_job(100 * KIB))
    assert reply.status == 201
    assert len((await client.job(reply.doc["id"]))["payload"]) > 99 * KIB


@pytest.mark.settings(max_body=100 * KIB)
async def test_a_chunked_body_over_the_limit_is_413(site: Site) -> None:
    chunk = b"%x\r\n" % (60 * KIB) + b" " * (60 * KIB) + b"\r\n"
    head = b"POST /jobs HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\n"
    reply = await exchange(site.port, head + chunk + chunk + b"0\r\n\r\n")
    assert reply.status == 413
    assert list(reply.doc) == ["error"]


@pytest.mark.settings(max_body=100 * KIB)
async def test_a_declared_body_over_the_limit_is_413_before_it_is_sent(site: Site) -> None:
    head = b"POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: 1000000\r\n\r\n"
    reply = await exchange(site.port, head)
    assert reply.status == 413


async def test_a_request_line_over_the_limit_is_414(site: Site) -> None:
    reply = await exchange(site.port, b"GET /jobs?queue=" + b"q" * 70_000 + b" HTTP/1.1\r\n\r\n")
    assert reply.status == 414
    assert list(reply.doc) == ["error"]


async def test_a_header_over_the_limit_is_431(site: Site) -> None:
    head = b"GET /health HTTP/1.1\r\nHost: q\r\nX-Long: " + b"x" * 70_000 + b"\r\n\r\n"
    reply = await exchange(site.port, head)
    assert reply.status == 431
    assert list(reply.doc) == ["error"]


async def test_too_many_headers_are_431(site: Site) -> None:
    many = b"".join(b"X-%d: y\r\n" % n for n in range(1_000))
    reply = await exchange(site.port, b"GET /health HTTP/1.1\r\nHost: q\r\n" + many + b"\r\n")
    assert reply.status == 431
    assert list(reply.doc) == ["error"]


async def test_two_thousand_ids_fit_in_a_query(client: Client) -> None:
    job_ids = await client.enqueue_many(2_000)
    either = ",".join(job_ids[:1_000]), "%2C".join(job_ids[1_000:])
    reply = await client.get(f"/jobs/count?id={','.join(either)}")
    assert (reply.status, reply.doc) == (200, {"count": 2_000})


MALFORMED = [
    b"NOT HTTP\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost q\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: q\r\nBad Name: x\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: q\r\nX: a\x00b\r\n\r\n",
    b"POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: ten\r\n\r\n",
    b"POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /jobs HTTP/1.1\r\nHost: q\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
]


async def test_malformed_http_is_400_in_json(site: Site) -> None:
    for request_bytes in MALFORMED:
        reply = await exchange(site.port, request_bytes)
        assert reply.status == 400
        assert list(reply.doc) == ["error"]


async def test_a_refused_request_leaves_the_connection_usable(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        for body, status in [(b"{", 400), (b'{"queue":""}', 400), (b"[]", 400)]:
            await connection.send(post_jobs(body))
            assert (await connection.reply()).status == status
        await connection.send(post_jobs(b"x", b"Content-Type: text/plain"))
        assert (await connection.reply()).status == 415
        await connection.send(post_jobs(b"{}", b"Accept: text/html"))
        assert (await connection.reply()).status == 406
        await connection.send(b"PUT /jobs HTTP/1.1\r\nHost: q\r\n\r\n")
        assert (await connection.reply()).status == 405
        await connection.send(b"GET /nope HTTP/1.1\r\nHost: q\r\n\r\n")
        assert (await connection.reply()).status == 404
        await connection.send(post_jobs(json_job(100)))
        assert (await connection.reply()).status == 201


async def test_pipelined_requests_are_answered_in_order(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(
            post_jobs(json_job(100)) + b"GET /jobs/count HTTP/1.1\r\nHost: q\r\n\r\n"
        )
        assert (await connection.reply()).status == 201
        assert (await connection.reply()).doc == {"count": 1}


async def test_expect_100_continue_is_honoured(site: Site) -> None:
    body = json_job(100)
    async with await RawConnection.open(site.port) as connection:
        for _ in range(2):
            await connection.send(head_of(post_jobs(body, b"Expect: 100-continue")))
            assert (await connection.reply()).status == 100
            await connection.send(body)
            assert (await connection.reply()).status == 201


REFUSED_UNREAD = {
    "too large": (413, b"POST /jobs", b"Content-Length: 102401"),
    "no format of ours": (415, b"POST /jobs", b"Content-Length: 9\r\nContent-Type: text/plain"),
    "compressed": (415, b"POST /jobs", b"Content-Length: 9\r\nContent-Encoding: gzip"),
    "compressed on its way": (415, b"POST /jobs", b"Transfer-Encoding: gzip, chunked"),
    "an answer in no format": (406, b"POST /jobs", b"Content-Length: 9\r\nAccept: text/html"),
    "nowhere": (404, b"POST /nope", b"Content-Length: 9"),
    "a queue that cannot be": (404, b"POST /queues/a%2Cb/push", b"Content-Length: 9"),
    "no such method": (405, b"PUT /jobs", b"Content-Length: 9"),
}


@pytest.mark.settings(max_body=100 * KIB)
async def test_no_body_is_asked_for_that_is_certain_to_be_refused(site: Site) -> None:
    for status, line, headers in REFUSED_UNREAD.values():
        head = line + b" HTTP/1.1\r\nHost: q\r\nExpect: 100-continue\r\n" + headers + b"\r\n\r\n"
        async with await RawConnection.open(site.port) as connection:
            await connection.send(head)
            reply = await connection.reply()
            assert (reply.status, reply.headers["connection"]) == (status, "close"), headers
            assert await connection.rest() == b"", headers


async def test_a_body_that_is_there_already_is_not_asked_for(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(post_jobs(json_job(100), b"Expect: 100-continue"))
        assert (await connection.reply()).status == 201


async def test_a_body_that_is_coded_for_its_way_is_refused(site: Site) -> None:
    for path in [b"/jobs", b"/queues/q/push"]:
        for coding in [b"gzip, chunked", b"deflate,chunked", b"x, identity, Chunked"]:
            packed = gzip.compress(json_job(100))
            chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
            head = b"POST " + path + b" HTTP/1.1\r\nHost: q\r\nContent-Type: application/json\r\n"
            async with await RawConnection.open(site.port) as connection:
                await connection.send(head + b"Transfer-Encoding: " + coding + b"\r\n\r\n" + chunks)
                reply = await connection.reply()
                assert (reply.status, reply.headers["zq-error"]) == (415, "unsupported_media_type")
                assert "transfer coding" in reply.doc["error"], coding
                # Where it ends is known, so the connection goes on.
                await connection.send(post_jobs(json_job(100)))
                assert (await connection.reply()).status == 201, coding


async def test_a_compressed_body_is_refused_and_never_stored(client: Client) -> None:
    for path in ["/jobs", "/queues/q/push", "/jobs/redrive"]:
        for encoding in ("gzip", "br", "gzip, identity"):
            headers = {"content-encoding": encoding, "content-type": "application/json"}
            reply = await client.send("POST", path, gzip.compress(b"{}"), headers)
            assert reply.status == 415, path
            assert encoding in reply.doc["error"], path
        assert await client.count() == 0, path


async def test_http_1_0_is_answered_and_closed(site: Site) -> None:
    async with await RawConnection.open(site.port) as connection:
        await connection.send(b"GET /health HTTP/1.0\r\n\r\n")
        answer = await connection.rest()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0]
    assert json.loads(body)["status"] == "ok"


async def test_an_upgrade_to_cleartext_http_2_is_served_as_http_1(site: Site) -> None:
    reply = await exchange(
        site.port,
        b"GET /jobs/count HTTP/1.1\r\nHost: q\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    )
    assert (reply.status, reply.doc) == (200, {"count": 0})


async def test_odd_escapes_in_a_path_name_no_job(site: Site) -> None:
    for target in [b"/jobs/%zz", b"/jobs/%00", b"/jobs/%ff", b"/jobs/%"]:
        reply = await exchange(site.port, b"GET " + target + b" HTTP/1.1\r\nHost: q\r\n\r\n")
        assert reply.status in (400, 404), target
        assert list(reply.doc) == ["error"], target


async def test_odd_queries_are_answered(site: Site) -> None:
    for query in [b"queue=%zz", b"queue=%ff", b"=", b"&&", b"status", b"%00=1"]:
        request = b"GET /jobs?" + query + b" HTTP/1.1\r\nHost: q\r\n\r\n"
        reply = await exchange(site.port, request)
        assert reply.status in (200, 400), query


async def test_very_many_requests_that_come_together_are_answered_in_turn(site: Site) -> None:
    """Such as are answered at once, without waiting for anything."""
    count = 3_000
    async with await RawConnection.open(site.port) as connection:
        await connection.send(b"GET /nowhere HTTP/1.1\r\nHost: q\r\n\r\n" * count)
        assert [(await connection.reply()).status for _ in range(count)] == [404] * count
