"""Unusual answers of Zizq: the same requests were sent to it, and it answered like this."""

import pytest

from .client import Client, ids
from .raw import exchange
from .site import Site

ZIZQ_ID = "03hab0ei31dm3fk0yvx09bedf"
FOREIGN_BODIES = [
    ("application/x-www-form-urlencoded", b"done=1"),
    ("text/plain", b'{"retention": 1}'),
    ("application/json", b"null"),
    ("application/json", b'["done"]'),
    ("application/json", b"done"),
    ("application/msgpack", b"\x93\x01\x02\x03"),
    ("application/msgpack", b"\xc0"),
    (None, b"done=1"),
]


@pytest.mark.parametrize(("content_type", "body"), FOREIGN_BODIES)
async def test_a_success_ignores_a_foreign_body(
    client: Client, content_type: str | None, body: bytes
) -> None:
    job = await client.in_flight()
    target, headers = f"/jobs/{job['id']}/success", {"content-type": content_type}
    assert (await client.send("POST", target, body, headers)).status == 204
    again = await client.send("POST", target, body, headers)
    assert (again.status, again.error) == (404, "job not found in in-flight set")


async def test_an_id_of_zizq_names_no_job(client: Client) -> None:
    job = await client.enqueue()
    assert (await client.get("/jobs/count", id=ZIZQ_ID)).doc == {"count": 0}
    assert ids((await client.get("/jobs", id=f"{ZIZQ_ID},{job['id']}")).doc["jobs"]) == [job["id"]]
    assert (await client.delete("/jobs", id=ZIZQ_ID)).doc == {"deleted": 0}
    assert (await client.patch("/jobs", {"priority": 1}, id=ZIZQ_ID)).doc == {"patched": 0}
    for other in (ZIZQ_ID.upper(), ZIZQ_ID[1:], f"{ZIZQ_ID}0", f" {ZIZQ_ID}"):
        reply = await client.get("/jobs/count", id=other)
        assert (reply.status, reply.error) == (400, f'invalid job ID: "{other}"')


async def test_a_plus_sign_may_stand_before_a_number(client: Client) -> None:
    low = await client.enqueue(priority=5)
    await client.enqueue(priority=6)
    for written in ("+5", "005", "..+5", "+1..+5", f"{'0' * 30}5"):
        assert ids(await client.jobs(priority=written)) == [low["id"]], written
    page = (await client.get("/jobs", priority="+5", limit="+1")).doc["pages"]
    assert page["self"] == "/jobs?order=asc&limit=1&priority=5"
    for written in ("+", "++5", "+-5", "1+5", "5+", f"{'0' * 19}99999999"):
        assert (await client.get("/jobs", priority=written)).status == 400, written
    assert (await client.get("/jobs", limit="-1")).error == "limit must be between 1 and 2000"
    assert (await client.get("/jobs", limit=f"{'0' * 20}9999")).status == 400


@pytest.mark.parametrize("time", [2**63, 2**64 - 1])
async def test_a_time_beyond_all_that_is_stored_is_the_last_one(client: Client, time: int) -> None:
    last = 2**63 - 1
    late = await client.enqueue(ready_at=time)
    assert (late["status"], late["ready_at"]) == ("scheduled", last)
    moved = await client.change((await client.enqueue())["id"], ready_at=time)
    assert (moved["status"], moved["ready_at"]) == ("scheduled", last)
    held = await client.in_flight(queue="held")
    failed = await client.fail(held["id"], retry_at=time)
    assert (failed["status"], failed["ready_at"]) == ("scheduled", last)
    assert len(await client.jobs(ready_at=f"{time}..")) == 3


async def test_a_retention_beyond_all_that_is_stored_is_kept_and_never_ends(
    client: Client,
) -> None:
    retention = {"completed_ms": 2**64 - 1, "dead_ms": 2**63}
    held = await client.in_flight(retention=retention)
    assert held["retention"] == retention
    await client.succeed(held["id"])
    assert (await client.job(held["id"]))["purge_at"] == 2**63 - 1


@pytest.mark.parametrize("field", ["ready_at", "retention"])
async def test_a_time_above_64_bits_is_refused(client: Client, field: str) -> None:
    value = 2**64 if field == "ready_at" else {"dead_ms": 2**64}
    if client.wire.name.startswith("json"):
        assert (await client.post("/jobs", {**JOB, field: value})).status == 400


JOB = {"queue": "q", "type": "t", "payload": None}


async def test_an_empty_retention_is_echoed(client: Client) -> None:
    for retention in ({}, {"completed_ms": None}, {"completed_ms": None, "dead_ms": None}):
        job = await client.enqueue(retention=retention)
        assert job["retention"] == {}
        assert (await client.job(job["id"]))["retention"] == {}
    await client.change(job["id"], retention={"dead_ms": 5})
    assert (await client.job(job["id"]))["retention"] == {"dead_ms": 5}
    await client.change(job["id"], retention={"dead_ms": None})
    assert "retention" not in await client.job(job["id"])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("zz=1", "zz: unknown field `zz`, expected one of `prefetch`, `queue`"),
        ("queue=a&queue=b", "duplicate field `queue`"),
        ("prefetch=-1", "`prefetch` must be a whole number from 0 to 18446744073709551615"),
    ],
)
async def test_a_stream_says_in_plain_text_what_is_wrong_with_its_query(
    client: Client, query: str, text: str
) -> None:
    reply = await client.send(
        "GET", f"/jobs/take?{query}", headers={"accept": client.wire.stream_type}
    )
    assert (reply.status, reply.media_type) == (400, "text/plain; charset=utf-8")
    assert reply.headers["zq-error"] == ("unknown_field" if "zz" in text else "invalid_request")
    assert reply.body.decode().startswith(f"Failed to deserialize query string: {text}")


async def test_a_stream_may_ask_for_more_than_there_can_ever_be(client: Client) -> None:
    job = await client.enqueue()
    stream = await client.take(prefetch=2**64 - 1)
    assert (await stream.job())["id"] == job["id"]


@pytest.mark.parametrize("attempt", ["x", "-1", "1.0", "%201", "4294967296"])
async def test_an_attempt_that_is_no_number_is_refused_in_plain_text(
    client: Client, attempt: str
) -> None:
    reply = await client.get(f"/jobs/{ZIZQ_ID}/errors/{attempt}")
    assert (reply.status, reply.media_type) == (400, "text/plain; charset=utf-8")
    shown = attempt.replace("%20", " ")
    assert reply.body.decode() == (
        f"Invalid URL: Cannot parse value at index 1 with value `{shown}` to a `u32`"
    )


async def status_for(site: Site, host: str) -> int:
    request = f"GET /queues HTTP/1.1\r\nHost: {host}\r\n\r\n"
    return (await exchange(site.port, request.encode())).status


@pytest.mark.settings(host="0.0.0.0", insecure=True)
async def test_who_listens_everywhere_without_keys_goes_by_every_address(site: Site) -> None:
    for host in ("10.1.2.3", "10.1.2.3:7890", "[2001:db8::1]:80", "192.168.0.9"):
        assert await status_for(site, host) == 200, host
    for host in ("queue.example", "0.0.0.0", "[::]:80", "[::ffff:0.0.0.0]"):
        assert await status_for(site, host) == 403, host


@pytest.mark.settings(insecure=True)
async def test_who_listens_on_one_address_goes_by_no_other(site: Site) -> None:
    assert await status_for(site, "10.1.2.3") == 403
