"""The formats of requests and answers: Accept for answers, Content-Type for bodies."""

import msgpack

from .client import JSON, MSGPACK, WIRES, Client, new_job, to_json
from .raw import exchange
from .site import Site

FORMATS = ["application/json", "application/msgpack"]


CHOSEN = {
    None: "application/json",
    "application/json": "application/json",
    "*/*": "application/json",
    "text/html, */*;q=0.1": "application/json",
    "application/json; charset=utf-8": "application/json",
    "application/msgpack": "application/msgpack",
    "application/json, application/msgpack": "application/msgpack",
    "application/json;q=1, application/msgpack;q=0.1": "application/msgpack",
    "*/*, application/msgpack": "application/msgpack",
}


async def test_accept_chooses_the_format_of_the_answer(client: Client) -> None:
    for accept, expected in CHOSEN.items():
        reply = await client.send("GET", "/jobs/count", headers={"accept": accept})
        assert (reply.status, reply.media_type, reply.doc) == (200, expected, {"count": 0}), accept


async def test_an_undecodable_accept_means_json(site: Site) -> None:
    request = b"GET /jobs/count HTTP/1.1\r\nHost: q\r\nAccept: text/html\xff\r\n\r\n"
    reply = await exchange(site.port, request)
    assert (reply.status, reply.doc) == (200, {"count": 0})


async def test_an_accept_that_names_no_known_format_is_406_in_json(client: Client) -> None:
    for accept in ("text/html", "application/x-ndjson", "image/*", "msgpack"):
        reply = await client.send("GET", "/jobs/count", headers={"accept": accept})
        assert (reply.status, reply.media_type) == (406, "application/json"), accept
        assert reply.doc == {"error": "not acceptable", "supported": FORMATS}


async def test_a_content_type_that_names_no_known_format_is_415_in_the_accepted_format(
    client: Client,
) -> None:
    body = client.wire.encode(new_job())
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "msgpack"):
        reply = await client.send("POST", "/jobs", body, {"content-type": content_type})
        assert (reply.status, reply.media_type) == (415, client.wire.media_type)
        assert reply.doc == {"error": "unsupported media type", "supported": FORMATS}


async def test_415_holds_for_every_route_that_reads_a_body(client: Client) -> None:
    job_id = await client.make("in_flight")
    for method, target in [
        ("POST", "/jobs"),
        ("POST", "/jobs/bulk"),
        ("POST", "/jobs/success"),
        ("POST", f"/jobs/{job_id}/failure"),
        ("PATCH", f"/jobs/{job_id}"),
        ("PATCH", "/jobs"),
    ]:
        reply = await client.send(method, target, b"x", {"content-type": "text/plain"})
        assert reply.status == 415, target


async def test_accept_is_judged_before_the_body(client: Client) -> None:
    headers = {"accept": "text/html", "content-type": "text/plain"}
    assert (await client.send("POST", "/jobs", b"{", headers)).status == 406


async def test_content_type_is_judged_before_the_body(client: Client) -> None:
    reply = await client.send("POST", "/jobs", b"\xc1", {"content-type": "text/plain"})
    assert reply.status == 415


async def test_a_body_without_content_type_is_json(client: Client) -> None:
    reply = await client.send("POST", "/jobs", to_json(new_job()))
    assert (reply.status, reply.media_type) == (201, client.wire.media_type)


async def test_content_type_chooses_by_what_it_contains(client: Client) -> None:
    for content_type in ("application/json; charset=utf-8", "application/msgpack"):
        body = WIRES[content_type.split(";")[0]].encode(new_job(payload=7))
        reply = await client.send("POST", "/jobs", body, {"content-type": content_type})
        assert reply.status == 201, content_type


async def test_a_content_type_that_names_both_formats_is_messagepack(client: Client) -> None:
    headers = {"content-type": "application/json, application/msgpack"}
    reply = await client.send("POST", "/jobs", MSGPACK.encode(new_job()), headers)
    assert reply.status == 201


async def test_request_and_response_formats_are_independent(client: Client) -> None:
    for wire in (JSON, MSGPACK):
        body = wire.encode(new_job(payload={"n": 1}))
        reply = await client.send("POST", "/jobs", body, {"content-type": wire.media_type})
        assert (reply.status, reply.media_type) == (201, client.wire.media_type)
        assert (await client.job(reply.doc["id"]))["payload"] == {"n": 1}


async def test_a_body_in_the_other_format_is_not_guessed_at(client: Client) -> None:
    other = MSGPACK if client.wire.media_type == JSON.media_type else JSON
    headers = {"content-type": client.wire.media_type}
    assert (await client.send("POST", "/jobs", other.encode(new_job()), headers)).status == 400


async def test_errors_come_in_the_accepted_format(client: Client) -> None:
    missing = await client.get("/jobs/nobody")
    assert (missing.status, missing.media_type) == (404, client.wire.media_type)
    assert missing.error == "job not found"
    invalid = await client.post("/jobs", {"queue": "q"})
    assert (invalid.status, invalid.media_type) == (400, client.wire.media_type)
    assert invalid.error


async def test_null_able_fields_are_left_out_but_page_links_are_null(client: Client) -> None:
    await client.enqueue()
    page = (await client.get("/jobs")).doc
    assert page["pages"]["next"] is None
    assert page["pages"]["prev"] is None
    fields = {name for name, value in page["jobs"][0].items() if value is None}
    assert fields == {"payload"}


async def test_unknown_body_fields_are_ignored(client: Client) -> None:
    job = await client.enqueue(colour="red", nested={"a": [1]})
    assert "colour" not in await client.job(job["id"])
    assert "colour" not in await client.change(job["id"], colour="blue")


async def test_unknown_query_parameters_are_400(client: Client) -> None:
    for target, message in {
        "/jobs": "invalid query parameters: ",
        "/jobs/count": "invalid query parameters: ",
        "/jobs/take": "Failed to deserialize query string: ",
    }.items():
        reply = await client.send("GET", f"{target}?colour=red", headers={"accept": "*/*"})
        assert reply.status == 400, target
        assert reply.error.startswith(message), target


async def test_messagepack_is_maps_with_string_keys(site: Site) -> None:
    async with Client(site, MSGPACK) as client:
        await client.enqueue(payload={"a": [{"b": 1}]}, retry_limit=3)
        body = (await client.get("/jobs")).body

    def pairs_with_text_keys(pairs: list[tuple[object, object]]) -> dict[object, object]:
        assert all(isinstance(key, str) for key, _ in pairs)
        return dict(pairs)

    page = msgpack.unpackb(body, object_pairs_hook=pairs_with_text_keys)
    assert page["jobs"][0]["payload"] == {"a": [{"b": 1}]}


async def test_numbers_keep_kind_and_value_from_either_format_to_either(client: Client) -> None:
    numbers = [0, 1.0, 0.1, -1.5e300, 2**53 + 1, -(2**63), 2**64 - 1, 5e-324]
    for wire in (JSON, MSGPACK):
        body = wire.encode(new_job(payload=numbers))
        reply = await client.send("POST", "/jobs", body, {"content-type": wire.media_type})
        delivered = (await client.job(reply.doc["id"]))["payload"]
        assert [repr(number) for number in delivered] == [repr(number) for number in numbers]
