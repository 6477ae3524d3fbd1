"""POST /queues/{queue}/push: requests of forms and plain clients become jobs."""

from typing import Any

from .client import Client

FORM = "application/x-www-form-urlencoded"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
MULTIPART = "multipart/form-data; boundary=xx"
PARTS = b'--xx\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xc5\xbe\r\n--xx--\r\n'
PHOTO = b'--xx\r\nContent-Disposition: form-data; name="a"; filename="p"\r\n\r\n..\r\n--xx--\r\n'


async def push(client: Client, path: str, body: bytes, kind: str | None) -> Any:
    return await client.send("POST", f"/queues/{path}", body, {"Content-Type": kind})


async def test_a_body_becomes_a_payload(client: Client) -> None:
    for kind, body, payload, shown in [
        ("application/json", b'{"n": 1}', {"n": 1}, None),
        (None, b'{"n":\n1}', {"n": 1}, None),
        ("application/msgpack", b"\x81\xa1n\x01", {"n": 1}, None),
        (FORM, b"a=1&b=%C5%BE&a=2&c=", {"a": ["1", "2"], "b": "ž", "c": ""}, None),
        (MULTIPART, PARTS, {"a": "ž"}, None),
        (TEXT, b'{"n": 1}', '{"n": 1}', "text/plain"),
        (BYTES, b"\x00\xff", "AP8=", BYTES),
    ]:
        reply = await push(client, "mail/push?page=7&x=1", body, kind)

        assert reply.status == 202, reply.doc
        assert reply.headers["x-job-id"] == reply.doc["id"], kind
        job = await client.job(reply.doc["id"])
        assert (job["queue"], job["type"], job["payload"]) == ("mail", "mail", payload), kind
        assert job["meta"] == {"params": {"page": "7", "x": "1"}}, kind
        assert job.get("content_type") == shown, kind


REFUSED: list[tuple[str, str | None, bytes, int]] = [
    ("mail/push", "application/xml", b"<x/>", 415),
    ("mail/push", "application/json", b"{", 422),
    ("mail/push", "application/json", b"1e999", 422),
    ("mail/push", "application/json", b"", 422),
    ("mail/push", None, b" null ", 422),
    ("mail/push", TEXT, b"\xff", 422),
    ("mail/push", FORM, b"no field", 422),
    ("mail/push", FORM, b"a=%FF", 422),
    ("mail/push", MULTIPART, b"no parts", 422),
    ("mail/push", MULTIPART, PHOTO, 422),
    ("mail.fifo/push", None, b"{}", 422),
    ("mail.fifo/push/%2C", None, b"{}", 422),
    ("mail/push/group", None, b"{}", 404),
    ("mail/push/group/dedupe", None, b"{}", 404),
    ("a%2Cb/push", None, b"{}", 404),
    ("mail/push/group/dedupe/more", None, b"{}", 404),
]


async def test_what_cannot_be_pushed_is_refused(client: Client) -> None:
    for path, kind, body, status in REFUSED:
        reply = await push(client, path, body, kind)
        assert reply.status == status, (path, kind, body)
        assert reply.doc["error"]
        assert reply.media_type == client.wire.media_type
        assert await client.count() == 0, (path, kind, body)


async def test_a_media_type_that_is_refused_is_told_which_are_not(client: Client) -> None:
    reply = await push(client, "mail/push", b"<x/>", "text/html")
    assert {"application/json", FORM, "text/plain", BYTES} <= set(reply.doc["supported"])


async def test_the_path_tells_group_and_copy(client: Client) -> None:
    first = await push(client, "mail.fifo/push/ann/order%201", b'{"n":1}', None)
    again = await push(client, "mail.fifo/push/ann/order%201", b'{"n":2}', None)
    other = await push(client, "mail.fifo/push/bob/order%201", b'{"n":3}', None)
    plain = await push(client, "mail.fifo/push/ann?page=7", b'{"n":1}', None)

    assert (first.status, again.status) == (202, 202)
    assert again.headers["x-job-id"] == first.headers["x-job-id"]
    assert again.doc["duplicate"] is True
    jobs = await client.jobs()
    assert [job["id"] for job in jobs] == [first.doc["id"], other.doc["id"], plain.doc["id"]]
    assert [(job["group"], job["payload"]["n"]) for job in jobs] == [
        ("ann", 1),
        ("bob", 3),
        ("ann", 1),
    ]
    assert [job["meta"]["params"] for job in jobs] == [
        {"group": "ann", "dedupe": "order 1"},
        {"group": "bob", "dedupe": "order 1"},
        {"group": "ann", "page": "7"},
    ]


async def test_equal_payloads_of_a_group_are_one_job(client: Client) -> None:
    first = await push(client, "mail.fifo/push/ann", b'{"n": 1, "m": [2]}', None)
    equal = await push(client, "mail.fifo/push/ann", b'{"m":[2],"n":1}', None)
    others = [
        await push(client, "mail.fifo/push/ann", b'{"m":[2],"n":2}', None),
        await push(client, "mail.fifo/push/bob", b'{"m":[2],"n":1}', None),
    ]
    assert equal.doc["duplicate"] is True
    assert equal.headers["x-job-id"] == first.headers["x-job-id"]
    assert len({first.doc["id"], *(other.doc["id"] for other in others)}) == 3

    for _ in range(2):  # a queue that is none of groups knows no copies
        await push(client, "mail/push", b'{"n":1}', None)
    assert await client.count(queue="mail") == 2
