"""Input that no sane client sends: always an answer, never a 500."""

import json
from typing import Any

import msgpack
import pytest

from .client import JSON, MSGPACK, Client, new_job, with_query
from .raw import RawConnection
from .site import Site

DEPTH = 128
HUGE = "9" * 30


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def nested_maps(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def with_payload(payload: str | bytes) -> bytes:
    """An enqueue body in JSON with this text as its payload."""
    raw = payload.encode() if isinstance(payload, str) else payload
    return b'{"queue":"q","type":"t","payload":' + raw + b"}"


def packed_with(payload: bytes) -> bytes:
    """An enqueue body in MessagePack with these bytes as its payload."""
    return b"\x83\xa5queue\xa1q\xa4type\xa1t\xa7payload" + payload


BAD_JSON = {
    "not a number": with_payload("NaN"),
    "infinity": with_payload("Infinity"),
    "negative infinity": with_payload("-Infinity"),
    "a float beyond doubles": with_payload("1e999"),
    "a negative float beyond doubles": with_payload("[-1e999]"),
    "an integer of 30 digits": with_payload(HUGE),
    "an integer of 30 digits deep inside": with_payload('{"a":[' + HUGE + "]}"),
    "an integer of 5000 digits": with_payload("1" * 5_000),
    "the first integer too large": with_payload(str(2**64)),
    "the first integer too small": with_payload(str(-(2**63) - 1)),
    "a lone high surrogate": with_payload(r'"\ud800"'),
    "a lone low surrogate": with_payload(r'"\udc00x"'),
    "surrogates in the wrong order": with_payload(r'"\udc00\ud800"'),
    "a lone surrogate as a key": with_payload(r'{"\ud800":1}'),
    "a lone surrogate in a name": rb'{"queue":"\ud800","type":"t","payload":1}',
    "a lone surrogate in a unique key": (
        rb'{"queue":"q","type":"t","payload":1,"unique_key":"\udfff"}'
    ),
    "invalid UTF-8": with_payload(b'"\xff"'),
    "an overlong encoding": with_payload(b'"\xc0\x80"'),
    "an encoded surrogate": with_payload(b'"\xed\xa0\x80"'),
    "UTF-16": json.dumps(new_job()).encode("utf-16"),
    "a control character": with_payload(b'"\x01"'),
    "a trailing comma": with_payload("[1,]"),
    "a leading zero": with_payload("01"),
    "a bare word": with_payload("nul"),
    "single quotes": with_payload("'a'"),
    "a comment": with_payload("/* no */ 1"),
    "text after the document": with_payload("1") + b"x",
    "two documents": with_payload("1") * 2,
    "an open string": b'{"queue":"q',
    "an unknown escape": with_payload(r'"\x41"'),
    "nesting of 129": with_payload("[" * (DEPTH + 1) + "]" * (DEPTH + 1)),
    "nesting of 129 in maps": with_payload(json.dumps(nested_maps(DEPTH + 1))),
    "nesting of 100000": with_payload("[" * 100_000 + "]" * 100_000),
    "an open nesting of 100000": with_payload("[" * 100_000),
    "nesting in a field that nobody asked for": (
        with_payload("1")[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    ),
    "white space": b" \n\t",
    "nothing": b"",
    "zeros": b"\0" * 64,
}

BAD_MSGPACK = {
    "bin as payload": packed_with(b"\xc4\x01x"),
    "empty bin": packed_with(b"\xc4\x00"),
    "bin deep inside": packed_with(b"\x81\xa1a\x91\xc5\x00\x01x"),
    "bin as a key": packed_with(b"\x81\xc4\x01a\x01"),
    "bin as a name": b"\x83\xa5queue\xc4\x01q\xa4type\xa1t\xa7payload\xc0",
    "a fixed ext": packed_with(b"\xd4\x01x"),
    "an ext": packed_with(b"\xc7\x01\x05x"),
    "a timestamp": packed_with(b"\xd6\xff\x00\x00\x00\x01"),
    "a timestamp of 96 bits": packed_with(b"\xc7\x0c\xff" + b"\0" * 12),
    "an ext deep inside": packed_with(b"\x91\xd4\x01x"),
    "invalid UTF-8": packed_with(b"\xa1\xff"),
    "invalid UTF-8 in a key": packed_with(b"\x81\xa1\xff\x01"),
    "an encoded surrogate": packed_with(b"\xa3\xed\xa0\x80"),
    "a number as a key": packed_with(b"\x81\x01\x02"),
    "nil as a key": packed_with(b"\x81\xc0\x02"),
    "a list as a key": packed_with(b"\x81\x90\x02"),
    "not a number": packed_with(msgpack.packb(float("nan"))),
    "infinity": packed_with(msgpack.packb(float("inf"))),
    "negative infinity": packed_with(msgpack.packb([float("-inf")])),
    "a float of 32 bits that is infinite": packed_with(b"\xca\x7f\x80\x00\x00"),
    "the reserved byte": packed_with(b"\xc1"),
    "a string that ends early": packed_with(b"\xa5ab"),
    "a list that ends early": packed_with(b"\x93\x01"),
    "a list of four billion": packed_with(b"\xdd\xff\xff\xff\xff"),
    "a map of four billion": packed_with(b"\xdf\xff\xff\xff\xff"),
    "a string of four billion": packed_with(b"\xdb\xff\xff\xff\xff"),
    "bytes after the document": packed_with(b"\xc0\xc0"),
    "an array in place of the map": msgpack.packb(["q", "t", None]),
    "nesting of 129": packed_with(msgpack.packb(nested(DEPTH + 1))),
    "nesting of 129 in maps": packed_with(msgpack.packb(nested_maps(DEPTH + 1))),
    "nesting of 100000": packed_with(b"\x91" * 100_000 + b"\xc0"),
    "an open nesting of 100000": packed_with(b"\x91" * 100_000),
    "nothing": b"",
}

ODD_DOCUMENTS: list[Any] = [None, True, 0, 1.5, "x", [], [new_job()], {"jobs": 5}, {"": 1}]


async def test_bad_json_is_400(site: Site) -> None:
    async with Client(site, JSON) as client:
        for case, body in BAD_JSON.items():
            reply = await client.send("POST", "/jobs", body, {"content-type": "application/json"})
            assert reply.status == 400, case
            assert reply.error, case
            bulk = b'{"jobs":[' + body + b"]}"
            if case not in ("nothing", "white space"):
                reply = await client.send("POST", "/jobs/bulk", bulk)
                assert reply.status == 400, case
            assert await client.count() == 0, case


async def test_bad_messagepack_is_400(site: Site) -> None:
    headers = {"content-type": "application/msgpack"}
    async with Client(site, MSGPACK) as client:
        for case, body in BAD_MSGPACK.items():
            reply = await client.send("POST", "/jobs", body, headers)
            assert reply.status == 400, case
            assert reply.error, case
            bulk = b"\x81\xa4jobs\x91" + body
            reply = await client.send("POST", "/jobs/bulk", bulk, headers)
            assert reply.status == 400, case
            assert await client.count() == 0, case


@pytest.mark.every_library
async def test_the_largest_numbers_and_the_deepest_nesting_are_accepted(client: Client) -> None:
    payloads = [
        -(2**63),
        2**64 - 1,
        1.7976931348623157e308,
        5e-324,
        -0.0,
        nested(DEPTH),
        nested_maps(DEPTH),
        [nested(DEPTH - 1), nested_maps(DEPTH - 1)],
    ]
    reply = await client.post("/jobs/bulk", {"jobs": [new_job(payload=item) for item in payloads]})
    assert reply.status == 201, reply.doc
    for payload, job in zip(payloads, reply.doc["jobs"], strict=True):
        assert repr((await client.job(job["id"]))["payload"]) == repr(payload)
        single = await client.enqueue(payload=payload)
        assert repr((await client.job(single["id"]))["payload"]) == repr(payload)


@pytest.mark.every_library
async def test_a_document_of_the_wrong_kind_is_400_everywhere(client: Client) -> None:
    job = await client.in_flight()
    before = await client.job(job["id"])
    for document in ODD_DOCUMENTS:
        for method, target in [
            ("POST", "/jobs"),
            ("POST", "/jobs/bulk"),
            ("POST", "/jobs/success"),
            ("POST", f"/jobs/{job['id']}/failure"),
        ]:
            reply = await client.call(method, target, document)
            assert reply.status == 400, (target, document)
            assert reply.error
    for document in ODD_DOCUMENTS[:7]:
        for target in ("/jobs", f"/jobs/{job['id']}"):
            assert (await client.patch(target, document)).status == 400, document
    assert await client.job(job["id"]) == before


TWICE = (
    b'{"queue":"a","queue":"b","type":"t","payload":1}',
    b'{"queue":"q","type":"t","payload":1,"payload":2}',
    b'{"queue":"q","type":"t","payload":{"a":1,"a":2}}',
    b'{"queue":"q","type":"t","payload":{"a":{"b":1},"a":[]}}',
    b'\xef\xbb\xbf{"queue":"q","type":"t","payload":1}',
)


async def test_duplicate_keys_are_refused_or_delivered_alike_in_both_formats(site: Site) -> None:
    async with Client(site, JSON) as json_client, Client(site, MSGPACK) as msgpack_client:
        for body in TWICE:
            reply = await json_client.send("POST", "/jobs", body)
            assert reply.status in (201, 400), body
            if reply.status == 201:
                job_id = reply.doc["id"]
                assert await json_client.job(job_id) == await msgpack_client.job(job_id), body


SPELLINGS = (
    "-0",
    "-0.0",
    "1E2",
    "1e-400",
    "0.1e1",
    "1e15",
    "1e16",
    "123456789012345678901.0",
    r'"\ud83d\ude00"',
    r'"\u0000"',
    r'"\/"',
    '"\u2028"',
    '"\x7f"',
    " [ 1 , 2 ] ",
)


async def test_unusual_spellings_mean_the_same_in_both_formats(site: Site) -> None:
    async with Client(site, JSON) as json_client, Client(site, MSGPACK) as msgpack_client:
        for text in SPELLINGS:
            reply = await json_client.send("POST", "/jobs", with_payload(text))
            assert reply.status == 201, text
            expected = repr(json.loads(text))
            for client in (json_client, msgpack_client):
                assert repr((await client.job(reply.doc["id"]))["payload"]) == expected
                stream = await client.take()
                assert repr((await stream.job())["payload"]) == expected
                await stream.close()
                await client.until(reply.doc["id"], status="ready")
            await json_client.delete(f"/jobs/{reply.doc['id']}")


async def test_a_body_that_is_cut_off_stores_nothing(site: Site) -> None:
    body = json.dumps(new_job()).encode()
    async with await RawConnection.open(site.port) as connection:
        head = b"POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\n\r\n" % (len(body) + 10)
        await connection.send(head + body)
    async with Client(site, JSON) as client:
        assert await client.count() == 0
        await client.enqueue()


async def test_odd_values_of_parameters_are_answered(client: Client) -> None:
    odd = [
        "\x00",
        "é",
        "💥",
        "a" * 5_000,
        "%",
        "1e3",
        "1.0",
        "+1",
        " 1",
        "0x1",
        "..",
        "...",
        "\u0661",
    ]
    for target in ("/jobs", "/jobs/count"):
        for name in (
            "status",
            "queue",
            "type",
            "group",
            "id",
            "priority",
            "ready_at",
            "attempts",
            "filter",
        ):
            for value in odd:
                reply = await client.get(target, **{name: value})
                assert reply.status in (200, 400), (name, value)
    for value in [*odd, "99999999999999999999"]:
        for name in ("from", "limit", "order"):
            reply = await client.get("/jobs", **{name: value})
            assert reply.status in (200, 400), (name, value)
        reply = await client.send("HEAD", with_query("/jobs/take", {"prefetch": value}))
        assert reply.status in (200, 400), value
