"""The statuses and messages of errors."""

import pytest

from .client import JSON, Client, Doc, Reply, new_job


async def refused(client: Client, **fields: object) -> Reply:
    reply = await client.post("/jobs", new_job(**fields))
    assert reply.status == 400, (fields, reply.doc)
    return reply


def parse_prefix(client: Client) -> str:
    return (
        "invalid JSON: " if client.wire.media_type == JSON.media_type else "invalid MessagePack: "
    )


@pytest.mark.every_library
async def test_a_body_that_does_not_parse_is_400(client: Client) -> None:
    headers = {"content-type": client.wire.media_type}
    for body in (b"", b"{", b"\xc1", b"\x81\xa1", b'{"queue":}'):
        reply = await client.send("POST", "/jobs", body, headers)
        assert reply.status == 400, body
        assert reply.error.startswith(parse_prefix(client)), body


@pytest.mark.every_library
async def test_missing_fields_and_wrong_types_are_400(client: Client) -> None:
    cases: list[Doc] = [
        {"queue": ...},
        {"type": ...},
        {"payload": ...},
        {"queue": 1},
        {"type": None},
        {"queue": ["q"]},
        {"priority": "high"},
        {"retry_limit": True},
        {"backoff": "fast"},
        {"retention": 5},
        {"unique_key": 7},
    ]
    for fields in cases:
        reply = await refused(client, **fields)
        assert reply.error.startswith(parse_prefix(client)), fields


async def test_names_are_refused_with_the_rule_they_break(client: Client) -> None:
    for field in ["queue", "type"]:
        for name, rule in [
            ("", "must not be empty"),
            ("a,b", "must not contain ','"),
            ("a*", "must not contain '*' (reserved)"),
        ]:
            assert (await refused(client, **{field: name})).error == f"{field} {rule}", field


async def test_unique_while_needs_a_key(client: Client) -> None:
    reply = await refused(client, unique_while="queued")
    assert reply.error == "unique_while requires unique_key"


async def test_unique_while_knows_three_scopes(client: Client) -> None:
    reply = await refused(client, unique_key="k", unique_while="x")
    expected = 'invalid unique_while: "x" (expected "queued", "active", or "exists")'
    assert reply.error == expected


async def test_enqueue_checks_run_in_a_fixed_order(client: Client) -> None:
    wrong = {"type": "", "queue": "", "unique_while": "x"}
    assert (await refused(client, **wrong)).error == "type must not be empty"
    wrong["type"] = "t"
    assert (await refused(client, **wrong)).error == "queue must not be empty"
    wrong["queue"] = "q"
    assert (await refused(client, **wrong)).error == "unique_while requires unique_key"
    wrong["unique_key"] = "k"
    assert (await refused(client, **wrong)).error.startswith("invalid unique_while")


async def test_bulk_errors_name_the_index(client: Client) -> None:
    bulk = {"jobs": [new_job(), new_job(queue="a,b")]}
    reply = await client.post("/jobs/bulk", bulk)
    assert (reply.status, reply.error) == (400, "jobs[1]: queue must not contain ','")
    assert reply.headers["zq-error-index"] == "1"
    for wrong in (new_job(type=...), new_job(priority=70_000), new_job(payload=...), 5, None):
        reply = await client.post("/jobs/bulk", {"jobs": [new_job(), new_job(), wrong]})
        assert reply.status == 400
        assert "jobs[2]" in reply.error
        assert reply.headers["zq-error-index"] == "2"


async def test_bad_query_values_are_400(client: Client) -> None:
    bad = ("status=asleep", "priority=9..3", "attempts=x", "ready_at=-1", "priority=1..2..3")
    for target in ("/jobs", "/jobs/count"):
        for query in bad:
            reply = await client.get(f"{target}?{query}")
            assert reply.status == 400, (target, query)
            assert reply.error.startswith("invalid query parameters: "), (target, query)


async def test_a_bad_order_is_400(client: Client) -> None:
    reply = await client.get("/jobs?order=up")
    assert reply.status == 400
    assert reply.error.startswith("invalid query parameters: ")


async def test_a_limit_lies_between_1_and_2000(client: Client) -> None:
    job = await client.enqueue()
    for target in ("/jobs", f"/jobs/{job['id']}/errors"):
        for limit in (0, 2001):
            reply = await client.get(target, limit=limit)
            assert reply.status == 400
            assert reply.error == "limit must be between 1 and 2000"
        for limit in (1, 2000):
            assert (await client.get(target, limit=limit)).status == 200


async def test_a_malformed_id_in_a_query_is_400(client: Client) -> None:
    good = (await client.enqueue())["id"]
    for target in ("/jobs", "/jobs/count"):
        for bad in ("nope", "*", good + "0", good[:-1]):
            reply = await client.get(target, id=f"{good},{bad}")
            assert (reply.status, reply.error) == (400, f'invalid job ID: "{bad}"')


async def test_a_filter_that_does_not_compile_is_400(client: Client) -> None:
    for filter in (".[", "no_such_function", ". ==", "$undefined"):
        for target in ("/jobs", "/jobs/count"):
            reply = await client.get(target, filter=filter)
            assert reply.status == 400, (target, filter)
            assert reply.error.startswith("invalid filter: "), (target, filter)


async def test_an_empty_bulk_acknowledgement_is_400(client: Client) -> None:
    reply = await client.post("/jobs/success", {"ids": []})
    assert (reply.status, reply.error) == (400, "ids must not be empty")


@pytest.mark.every_library
async def test_unknown_paths_are_404_in_the_accepted_format(client: Client) -> None:
    for method in ("GET", "POST", "DELETE"):
        for target in ("/", "/nope", "/jobs/a/b/c/d", "/jobs/", "/queues/x", "/JOBS"):
            reply = await client.send(method, target)
            assert (reply.status, reply.media_type) == (404, client.wire.media_type), target
            assert reply.error == "not found"


async def test_an_unknown_path_with_an_unknown_accept_is_406(client: Client) -> None:
    assert (await client.send("GET", "/nope", headers={"accept": "text/html"})).status == 406


async def test_unknown_jobs_are_404(client: Client) -> None:
    job = await client.enqueue()
    acknowledged = await client.send("POST", f"/jobs/{job['id']}/success")
    assert (acknowledged.status, acknowledged.error) == (404, "job not found in in-flight set")
    failed = await client.post(f"/jobs/{job['id']}/failure", {"message": "m"})
    assert (failed.status, failed.error) == (404, "job not found in in-flight set")
    for method, target in [("GET", "/jobs/x"), ("DELETE", "/jobs/x"), ("GET", "/jobs/x/errors")]:
        reply = await client.send(method, target)
        assert (reply.status, reply.error) == (404, "job not found")
    record = await client.get(f"/jobs/{job['id']}/errors/1")
    assert (record.status, record.error) == (404, "error record not found")


WRONG_METHODS: list[tuple[str, str, set[str]]] = [
    ("PUT", "/jobs", {"GET", "HEAD", "POST", "PATCH", "DELETE"}),
    ("GET", "/jobs/bulk", {"POST"}),
    ("DELETE", "/jobs/bulk", {"POST"}),
    ("GET", "/jobs/success", {"POST"}),
    ("PATCH", "/jobs/success", {"POST"}),
    ("POST", "/jobs/take", {"GET", "HEAD"}),
    ("DELETE", "/jobs/count", {"GET", "HEAD"}),
    ("POST", "/jobs/some-id", {"GET", "HEAD", "PATCH", "DELETE"}),
    ("GET", "/jobs/some-id/success", {"POST"}),
    ("PUT", "/jobs/some-id/failure", {"POST"}),
    ("POST", "/jobs/some-id/errors", {"GET", "HEAD"}),
    ("POST", "/jobs/some-id/errors/1", {"GET", "HEAD"}),
    ("POST", "/queues", {"GET", "HEAD"}),
    ("POST", "/health", {"GET", "HEAD"}),
    ("DELETE", "/version", {"GET", "HEAD"}),
    ("GET", "/reset", {"POST"}),
    ("OPTIONS", "/jobs", {"GET", "HEAD", "POST", "PATCH", "DELETE"}),
]


@pytest.mark.every_library
async def test_a_wrong_method_is_405_with_allow_and_no_body(client: Client) -> None:
    for method, target, allowed in WRONG_METHODS:
        reply = await client.send(method, target)
        assert (reply.status, reply.body) == (405, b""), (method, target)
        told = set(reply.headers["allow"].replace(" ", "").split(","))
        assert told == allowed, (method, target)


@pytest.mark.every_library
async def test_every_get_route_answers_head_without_a_body(client: Client) -> None:
    job_id = await client.make("dead")
    for target in (
        "/jobs",
        "/jobs/count",
        f"/jobs/{job_id}",
        f"/jobs/{job_id}/errors",
        f"/jobs/{job_id}/errors/1",
        "/queues",
        "/health",
        "/version",
    ):
        full = await client.get(target)
        head = await client.send("HEAD", target)
        assert (head.status, head.media_type, head.body) == (200, client.wire.media_type, b"")
        assert full.status == 200
        if "content-length" in head.headers:
            assert head.headers["content-length"] == str(len(full.body))
    assert (await client.send("HEAD", "/jobs/nobody")).status == 404


@pytest.mark.every_library
async def test_a_204_carries_no_body(client: Client) -> None:
    job_id = await client.make("in_flight")
    for method, target in [("POST", f"/jobs/{job_id}/success"), ("POST", "/reset")]:
        reply = await client.send(method, target)
        assert (reply.status, reply.body) == (204, b"")
        assert reply.headers.get("content-length", "0") == "0"
        assert "transfer-encoding" not in reply.headers
