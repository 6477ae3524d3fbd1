"""Compressed bodies at the door of topics, where the server is told to take and give them."""

import gzip
import json
import random
import zlib
from typing import Any

import pytest
from conformance.client import Client, Reply, Wire
from conformance.site import Site

from zq.http.gzip import PART, _restored_parts

from .records import Records, refused, told

JSON_HEADERS = {"content-type": "application/json", "content-encoding": "gzip"}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"topics_gzip": True, "max_body": 1 << 20}


@pytest.fixture
async def log(site: Site, wire: Wire) -> Any:
    async with Client(site, wire) as client:
        yield Records(client)


async def append(log: Records, body: bytes) -> Reply:
    return await log.native.send("POST", "/v0/topics/t", body, JSON_HEADERS)


async def test_a_compressed_write_is_the_same_write(log: Records) -> None:
    records = [{"data": {"n": n, "text": "x" * 100}} for n in range(3_000)]
    reply = await append(log, gzip.compress(json.dumps({"records": records}).encode()))
    assert told(reply, (201,))["last_seq"] == 3_000
    assert (await log.seqs("t", 2_999)) == [3_000]


async def test_an_answer_is_compressed_for_those_who_take_that(log: Records) -> None:
    await log.append("t", *["x" * 100] * 50)
    target, body = "/v0/topics/t/diff", b'{"from_seq": 0}'
    for accepted, coded in (("gzip, br", True), ("gzip;q=0", False), (None, False)):
        headers = {"content-type": "application/json", "accept-encoding": accepted}
        reply = await log.native.send("POST", target, body, headers)
        assert ("content-encoding" in reply.headers) is coded
        assert reply.headers["vary"] == "Accept-Encoding"
        assert len(told(reply)["records"]) == 50
    reply = await log.native.send("GET", "/v0/health", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in reply.headers, "too small to be worth it"


async def test_a_body_has_its_bound_when_it_is_restored_too(log: Records) -> None:
    """A few kilobytes may stand for gigabytes."""
    bomb = gzip.compress(b'{"records": [{"data": "' + b"x" * (8 << 20) + b'"}]}')
    assert len(bomb) < 64 * 1024
    assert refused(await append(log, bomb)) == (413, "payload_too_large")
    await _nothing_is_held(log)


@pytest.mark.parametrize(
    "body",
    [b"{}", gzip.compress(b"{}")[:-4], gzip.compress(b"{}") + b"{}", b"", zlib.compress(b"{}")],
    ids=["plain", "cut off", "goes on", "empty", "zlib"],
)
async def test_what_is_no_gzip_is_refused(log: Records, body: bytes) -> None:
    assert refused(await append(log, body)) == (400, "invalid_request")
    await _nothing_is_held(log)


@pytest.mark.parametrize(
    "plain",
    [random.Random(1).randbytes(4 << 20), bytes(16 << 20)],
    ids=["what cannot be compressed", "zeros"],
)
def test_a_body_is_restored_in_time_to_its_length(
    plain: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a step leaves of its input is copied, so the decoder is given little at a time."""
    body = gzip.compress(plain)
    given = 0

    class Decoder:
        def __init__(self, bits: int) -> None:
            self._decoder = decompressobj(bits)

        def decompress(self, rest: bytes, most: int) -> bytes:
            nonlocal given
            given += len(rest)
            return self._decoder.decompress(rest, most)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._decoder, name)

    decompressobj = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Decoder)
    assert b"".join(_restored_parts(body)) == plain
    assert given <= len(body) + (len(plain) + PART) / 8


async def test_other_codings_are_refused(log: Records) -> None:
    headers = JSON_HEADERS | {"content-encoding": "br"}
    reply = await log.native.send("POST", "/v0/topics/t", b"{}", headers)
    assert refused(reply) == (415, "unsupported_media_type")


class TestUnlessTheServerIsTold:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {}

    async def test_nothing_is_compressed(self, log: Records) -> None:
        reply = await append(log, gzip.compress(b'{"records": [{"data": 1}]}'))
        assert refused(reply) == (415, "unsupported_media_type")
        await log.append("t", "x" * 5_000)
        headers = {"content-type": "application/json", "accept-encoding": "gzip"}
        reply = await log.native.send("POST", "/v0/topics/t/diff", b"{}", headers)
        assert "content-encoding" not in reply.headers and len(told(reply)["records"]) == 1


async def _nothing_is_held(log: Records) -> None:
    text = (await log.native.send("GET", "/metrics", headers={"accept": "*/*"})).body.decode()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert lines["zq_inbox_bytes"] == "0.0"
