"""Settings of queues: set, merged, cleared, refused if invalid, kept over a restart."""

from typing import Any

import pytest

from .client import Client, Doc, Reply, new_job

EVERYTHING: Doc = {
    "paused": False,
    "max_depth": 0,
    "rate": 2.5,
    "concurrency": 3,
    "retry_limit": 0,
    "stall_limit": 4,
    "backoff": {"exponent": 1.5, "base_ms": 10, "jitter_ms": 0},
    "retention": {"completed_ms": 1000, "dead_ms": 0},
    "ttl_ms": 60_000,
    "dead_letter": "q-dead",
    "lease_ms": 30_000,
    "leases_survive": False,
    "priority_aging_ms": 30_000,
    "registered": True,
}


async def put(client: Client, queue: str, **fields: Any) -> Doc:
    reply = await client.call("PUT", f"/queues/{queue}/settings", fields)
    assert reply.status == 200, reply.doc
    settings: Doc = reply.doc
    return settings


async def change(client: Client, queue: str, **fields: Any) -> Doc:
    reply = await client.patch(f"/queues/{queue}/settings", fields)
    assert reply.status == 200, reply.doc
    settings: Doc = reply.doc
    return settings


async def settings_of(client: Client, queue: str) -> Doc:
    reply = await client.get(f"/queues/{queue}/settings")
    assert reply.status == 200, reply.doc
    settings: Doc = reply.doc
    return settings


async def test_everything_that_is_set_is_shown_and_survives_a_restart(client: Client) -> None:
    assert await settings_of(client, "q") == {}
    assert await put(client, "q", **EVERYTHING) == EVERYTHING
    assert await settings_of(client, "q") == EVERYTHING
    assert await settings_of(client, "other") == {}
    await client.site.restart()
    assert await settings_of(client, "q") == EVERYTHING


async def test_put_replaces_and_patch_merges(client: Client) -> None:
    await put(client, "q", rate=5, paused=True, retention={"dead_ms": 9})
    assert await put(client, "q", rate=7.0, paused=None) == {"rate": 7.0}
    await put(client, "q", rate=7, concurrency=2, retention={"completed_ms": 1, "dead_ms": 2})
    merged = await change(client, "q", rate=None, paused=True, retention={"dead_ms": None})
    assert merged == {"concurrency": 2, "paused": True, "retention": {"completed_ms": 1}}
    assert await change(client, "q") == merged == await settings_of(client, "q")
    assert await change(client, "q", retention=None) == {"concurrency": 2, "paused": True}


async def test_delete_clears_and_may_be_repeated(client: Client) -> None:
    await put(client, "q", paused=True)
    for _ in range(2):
        assert (await client.delete("/queues/q/settings")).status == 204
        assert await settings_of(client, "q") == {}


async def test_settings_outlive_the_jobs_and_need_none(client: Client) -> None:
    await put(client, "q", paused=True)
    assert (await client.get("/queues")).doc == {"queues": []}
    await client.enqueue(queue="q")
    await client.delete("/jobs")
    assert await settings_of(client, "q") == {"paused": True}
    await client.enqueue(queue="q")
    assert (await client.send("POST", "/reset")).status == 204
    assert await settings_of(client, "q") == {}
    await client.in_flight(queue="q")


@pytest.mark.parametrize("name", ["a b", "a%2Fb", "%C3%BC", "a%25b", "q'\""])
async def test_a_queue_of_any_name_has_settings(client: Client, name: str) -> None:
    await put(client, name, max_depth=0)
    queue = {"a%2Fb": "a/b", "%C3%BC": "ü", "a%25b": "a%b"}.get(name, name)
    assert (await client.post("/jobs", new_job(queue=queue))).status == 429
    assert await settings_of(client, name) == {"max_depth": 0}


IMPOSSIBLE: list[Doc] = [
    {"paused": 1},
    {"paused": "yes"},
    {"max_depth": -1},
    {"max_depth": 2**32},
    {"max_depth": 1.5},
    {"rate": 0},
    {"rate": -1},
    {"rate": 1e9},
    {"rate": "5"},
    {"concurrency": 0},
    {"concurrency": 1.5},
    {"retry_limit": -1},
    {"stall_limit": -1},
    {"backoff": {"exponent": 1}},
    {"backoff": 5},
    {"retention": {"dead_ms": -1}},
    {"retention": []},
    {"ttl_ms": -1},
    {"ttl_ms": 2**63},
    {"dead_letter": ""},
    {"dead_letter": "a,b"},
    {"dead_letter": 5},
    {"lease_ms": 0},
    {"leases_survive": 0},
    {"priority_aging_ms": 0},
    {"color": "red"},
    {"Paused": True},
]


async def test_a_setting_that_cannot_be_is_400_and_changes_nothing(client: Client) -> None:
    await put(client, "q", rate=1)
    for fields in IMPOSSIBLE:
        for method in ("PUT", "PATCH"):
            body = fields | {"paused": True} | fields
            reply = await client.call(method, "/queues/q/settings", body)
            assert reply.status == 400, (method, fields)
            assert next(iter(fields)) in reply.error, (method, fields)
        assert await settings_of(client, "q") == {"rate": 1}, fields


async def test_what_is_no_request_for_settings_is_refused(client: Client) -> None:
    replies: list[tuple[Reply, int]] = [
        (await client.call("PUT", "/queues/q/settings", []), 400),
        (await client.send("PUT", "/queues/q/settings"), 400),
        (await client.call("POST", "/queues/q/settings", {}), 405),
        (await client.get("/queues/q/settings", x=1), 400),
        (await client.get("/queues/a,b/settings"), 400),
        (await client.get("/queues/q%2A/settings"), 400),
        (await client.get("/queues//settings"), 404),
    ]
    for reply, status in replies:
        assert reply.status == status


async def test_a_circle_of_dead_letter_queues_is_refused_with_its_path(client: Client) -> None:
    await put(client, "a", dead_letter="b")
    await put(client, "b", dead_letter="c")
    for queue, target, path in (("c", "a", "'c' -> 'a' -> 'b' -> 'c'"), ("d", "d", "'d' -> 'd'")):
        for method in ("PUT", "PATCH"):
            reply = await client.call(method, f"/queues/{queue}/settings", {"dead_letter": target})
            assert (reply.status, reply.headers["zq-error"]) == (409, "dead_letter_cycle")
            assert path in reply.error
        assert await settings_of(client, queue) == {}
    # Two that lead to the same third one are no circle.
    await put(client, "d", dead_letter="b")


async def test_a_queue_takes_as_many_unfinished_jobs_as_its_depth(client: Client) -> None:
    await put(client, "q", max_depth=3)
    first = await client.enqueue(queue="q")
    await client.enqueue(queue="q", ready_at=client.site.now + 1_000)
    bulk = {"jobs": [new_job(queue=name) for name in ("other", "q", "q")]}
    for target, body in (("/jobs/bulk", bulk),):
        reply = await client.post(target, body)
        assert (reply.status, reply.headers["zq-error"]) == (429, "queue_full")
        assert (reply.headers["retry-after"], "'q'" in reply.error) == ("1", True)
    assert await client.count() == 2, "a bulk is stored whole or not at all"
    await client.enqueue(queue="q")
    assert (await client.post("/jobs", new_job(queue="q"))).status == 429
    await client.enqueue(queue="other")

    # One that runs counts, one that is finished does not.
    stream = await client.take(queue="q", prefetch=1)
    assert (await stream.job())["id"] == first["id"]
    assert (await client.post("/jobs", new_job(queue="q"))).status == 429
    await client.succeed(first["id"])
    await client.enqueue(queue="q")
    assert (await client.post("/jobs", new_job(queue="q"))).status == 429
    await put(client, "q")
    await client.enqueue_many(5, queue="q")


async def test_a_duplicate_needs_no_room(client: Client) -> None:
    await put(client, "q", max_depth=1)
    unique: Doc = {"queue": "q", "unique_key": "k"}
    job = await client.enqueue(**unique)
    reply = await client.post("/jobs", new_job(**unique))
    assert (reply.status, reply.doc["id"]) == (200, job["id"])
    twice = {"jobs": [new_job(queue="r", unique_key="l")] * 2}
    await put(client, "r", max_depth=1)
    assert (await client.post("/jobs/bulk", twice)).status == 201


async def test_the_limits_of_a_queue_stand_between_the_jobs_own_and_the_servers(
    client: Client,
) -> None:
    backoff = {"exponent": 0, "base_ms": 500, "jitter_ms": 0}
    await put(client, "q", retry_limit=1, backoff=backoff, retention={"dead_ms": 70})
    job = await client.in_flight(queue="q")
    failed = await client.fail(job["id"])
    assert (failed["status"], failed["ready_at"]) == ("scheduled", client.site.now + 1_500)
    client.site.clock.advance(1_500)
    await client.until(job["id"], status="in_flight")
    dead = await client.fail(job["id"])
    assert (dead["status"], dead["purge_at"]) == ("dead", client.site.now + 70)
    own = await client.enqueue(queue="q", retry_limit=0, retention={"dead_ms": 5})
    await client.until(own["id"], status="in_flight")
    dead = await client.fail(own["id"])
    assert (dead["status"], dead["purge_at"]) == ("dead", client.site.now + 5)


async def test_a_pause_with_an_end_resumes_by_itself_also_over_a_restart(client: Client) -> None:
    site = client.site
    paused = {"paused": True, "pause_reason": "moving", "paused_until": site.now + 60_000}
    assert await change(client, "q", **paused, paused_by="mia") == paused | {"paused_by": "mia"}
    job = (await client.post("/jobs", new_job(queue="q"))).doc
    (reason, *_) = (await client.get(f"/jobs/{job['id']}/why")).doc["reasons"]
    assert (reason["code"], reason["until"]) == ("paused", paused["paused_until"])
    assert "paused by mia until 2025-" in reason["text"] and "(moving)" in reason["text"]
    stream = await client.take(queue="q")
    site.clock.advance(59_000)
    await site.restart()
    stream = await client.take(queue="q")
    site.clock.advance(2_000)
    assert (await stream.job())["id"] == job["id"]
    assert await settings_of(client, "q") == {}


async def test_a_pause_that_would_be_over_already_is_refused(client: Client) -> None:
    over = {"paused": True, "paused_until": client.site.now - 3_600_000}
    for method in ("PATCH", "PUT"):
        reply = await client.call(method, "/queues/q/settings", over)
        assert reply.status == 400
        assert "is over by the server's clock" in reply.doc["error"]
    assert await settings_of(client, "q") == {}


@pytest.mark.parametrize("wrong", [{"pause_reason": ""}, {"paused_until": -1}], ids=str)
async def test_what_is_wrong_about_a_pause_is_refused(client: Client, wrong: Doc) -> None:
    reply = await client.patch("/queues/q/settings", {"paused": True} | wrong)
    assert reply.status == 400
    assert await settings_of(client, "q") == {}
