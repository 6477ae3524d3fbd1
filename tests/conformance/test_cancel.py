"""Cancelling by id, by key and by filter; a job in flight only by force."""

from typing import Any

import pytest

from .client import Client, Doc, new_job, without_body


async def cancel(client: Client, job_id: str, **body: Any) -> Doc:
    reply = await client.post(f"/jobs/{job_id}/cancel", body)
    assert reply.status == 200, reply.doc
    job: Doc = reply.doc
    return job


@pytest.mark.parametrize("status", ["scheduled", "ready"])
@pytest.mark.parametrize("force", [False, True])
async def test_a_job_that_waits_is_cancelled_and_never_delivered(
    client: Client, status: str, force: bool
) -> None:
    job_id = await client.make(status)
    client.site.clock.advance(5)
    job = await cancel(client, job_id, force=force)
    now = client.site.now
    assert (job["status"], job["cancelled_at"], job["purge_at"]) == ("cancelled", now, now + 60_000)
    assert "payload" not in job
    assert without_body(await client.job(job_id)) == job
    assert await client.jobs(status="cancelled") == [await client.job(job_id)]
    client.site.clock.advance(59_999)
    stream = await client.take()
    other = await client.enqueue()
    assert (await stream.job())["id"] == other["id"]


async def test_a_cancellation_needs_no_body(client: Client) -> None:
    job = await client.enqueue()
    reply = await client.send("POST", f"/jobs/{job['id']}/cancel")
    assert (reply.status, reply.doc["status"]) == (200, "cancelled")


async def test_a_running_job_is_cancelled_only_by_force_and_its_worker_goes_on(
    client: Client,
) -> None:
    stream = await client.take(prefetch=1)
    first, second = await client.enqueue_many(2)
    assert (await stream.job())["id"] == first
    refusal = await client.post(f"/jobs/{first}/cancel", {})
    assert (refusal.status, refusal.headers["zq-error"]) == (409, "not_cancellable")
    assert refusal.doc["status"] == "in_flight"
    assert "force" in refusal.doc["error"]
    assert (await client.job(first))["status"] == "in_flight"

    assert (await cancel(client, first, force=True))["status"] == "cancelled"
    # Its slot is free, and what its worker says of it comes too late.
    assert (await stream.job())["id"] == second
    assert (await client.send("POST", f"/jobs/{first}/success")).status == 404
    assert (await client.post(f"/jobs/{first}/failure", {"message": "m"})).status == 404
    assert (await client.post(f"/jobs/{first}/success", {"lease": 1})).status == 409
    await stream.close()
    await client.until(second, status="ready")
    assert (await client.job(first))["status"] == "cancelled"


async def test_a_finished_job_cannot_be_cancelled(client: Client) -> None:
    for status in ["completed", "dead", "cancelled"]:
        for force in [False, True]:
            job_id = await client.make(status)
            before = await client.job(job_id)
            reply = await client.post(f"/jobs/{job_id}/cancel", {"force": force})
            assert (reply.status, reply.doc["status"]) == (409, status), (status, force)
            assert await client.job(job_id) == before, (status, force)


async def test_a_cancelled_job_is_kept_as_long_as_a_dead_one(client: Client) -> None:
    gone = await client.enqueue(retention={"dead_ms": 0})
    job = await cancel(client, gone["id"])
    assert (job["status"], "purge_at" in job) == ("cancelled", False)
    assert not await client.exists(gone["id"])
    kept = await client.enqueue(retention={"dead_ms": 20, "completed_ms": 0})
    await cancel(client, kept["id"])
    client.site.clock.advance(19)
    assert await client.exists(kept["id"])
    client.site.clock.advance(1)
    assert not await client.exists(kept["id"])


async def test_a_cancelled_job_cannot_be_changed_or_come_back(client: Client) -> None:
    job_id = await client.make("cancelled")
    before = await client.job(job_id)
    assert (await client.patch(f"/jobs/{job_id}", {"priority": 1})).status == 422
    assert (await client.patch("/jobs", {"ready_at": None})).doc == {"patched": 0}
    await client.site.restart()
    assert await client.job(job_id) == before
    assert await client.count(status="cancelled") == 1
    assert (await client.delete(f"/jobs/{job_id}")).status == 204


@pytest.mark.parametrize("scope", ["queued", "active", "exists"])
async def test_the_key_of_a_cancelled_job_is_free(client: Client, scope: str) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": scope}
    first = await client.enqueue(**unique)
    await cancel(client, first["id"])
    second = await client.enqueue(**unique)
    assert second["duplicate"] is False
    assert (await client.get("/jobs/by-key", key="k")).doc["id"] == second["id"]


async def test_the_owner_of_a_key_is_cancelled_by_it(client: Client) -> None:
    unique: Doc = {"unique_key": "a b/é&?", "unique_while": "active"}
    job = await client.in_flight(**unique)
    target = "/jobs/by-key/cancel?key=a%20b%2F%C3%A9%26%3F"
    assert (await client.send("POST", target)).status == 409
    reply = await client.post(target, {"force": True})
    assert (reply.status, reply.doc["id"]) == (200, job["id"])
    assert reply.doc["status"] == "cancelled"
    assert (await client.send("POST", target)).status == 404


async def test_a_filter_cancels_what_matches_and_can_be(client: Client) -> None:
    made = {
        status: await client.make(status, queue=status)
        for status in ("scheduled", "ready", "in_flight", "completed", "dead")
    }
    await client.enqueue_many(3, queue="many", payload={"n": 1})
    by_program = await client.send("POST", "/jobs/cancel?filter=.n%3F%3D%3D1")
    assert by_program.doc == {"cancelled": 3}
    assert (await client.post("/jobs/cancel?queue=dead,completed", {})).doc == {"cancelled": 0}
    assert (await client.send("POST", "/jobs/cancel")).doc == {"cancelled": 2}
    assert (await client.job(made["in_flight"]))["status"] == "in_flight"
    forced = await client.post("/jobs/cancel?status=in_flight", {"force": True})
    assert forced.doc == {"cancelled": 1}
    assert await client.count(status="cancelled") == 6


async def test_a_sweep_cancels_thousands(client: Client) -> None:
    await client.enqueue_many(2_500, queue="q")
    await client.enqueue_many(10, queue="other")
    reply = await client.send("POST", "/jobs/cancel?queue=q")
    assert (reply.status, reply.doc) == (200, {"cancelled": 2_500})
    assert await client.count(status="ready") == 10


async def test_what_cannot_be_cancelled_or_meant_is_refused(client: Client) -> None:
    job = await client.enqueue()
    job_id = job["id"]
    for target, body, status in [
        ("/jobs/cancel?status=completed", {}, 422),
        ("/jobs/cancel?status=in_flight", {}, 422),
        ("/jobs/cancel?status=dead", {"force": True}, 422),
        ("/jobs/cancel?color=red", {}, 400),
        ("/jobs/cancel?filter=", {}, 400),
        ("/jobs/cancel", {"force": 1}, 400),
        ("/jobs/cancel", [], 400),
        (f"/jobs/{job_id}/cancel", {"force": "yes"}, 400),
        (f"/jobs/{job_id}/cancel", [True], 400),
        ("/jobs/unknown/cancel", {}, 404),
        ("/jobs/by-key/cancel", {}, 400),
        ("/jobs/by-key/cancel?key=a&key=b", {}, 400),
        ("/jobs/by-key/cancel?key=unknown", {}, 404),
    ]:
        reply = await client.post(target, body)
        assert reply.status == status, target
        assert reply.error
    assert (await client.send("GET", f"/jobs/{job_id}/cancel")).status == 405
    assert (await client.send("GET", "/jobs/cancel")).status == 405
    assert (await client.job(job_id))["status"] == "ready"


# Look-up by key and what becomes of a conflict


async def test_the_owner_of_a_key_is_found_by_it(client: Client) -> None:
    for key in ("k", "", "a,b", "é 😀", "k\0z"):
        unique: Doc = {"unique_key": key, "unique_while": "exists"}
        job = await client.enqueue(payload={"key": key}, **unique)
        reply = await client.get("/jobs/by-key", key=key)
        assert (reply.status, reply.doc) == (200, await client.job(job["id"]))
    for target in ("/jobs/by-key", "/jobs/by-key?key=a&key=b", "/jobs/by-key?key=k&x=1"):
        assert (await client.send("GET", target)).status == 400
    assert (await client.get("/jobs/by-key", key="unknown")).status == 404


async def test_a_key_that_nobody_owns_any_more_finds_nothing(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "exists"}
    job = await client.in_flight(**unique, retention={"completed_ms": 20})
    assert (await client.get("/jobs/by-key", key="k")).status == 200
    await client.post(f"/jobs/{job['id']}/success", {"result": [1]})
    found = await client.get("/jobs/by-key", key="k")
    assert (found.status, found.doc["result"]) == (200, [1])
    client.site.clock.advance(20)
    assert (await client.get("/jobs/by-key", key="k")).status == 404


async def again(client: Client, on_conflict: str | None, **fields: Any) -> Doc:
    """Enqueue another job with the key."""
    body = new_job(unique_key="k", unique_while="exists", on_conflict=on_conflict, **fields)
    reply = await client.post("/jobs", body)
    assert reply.status == (200 if reply.doc["duplicate"] else 201)
    job: Doc = reply.doc
    return job


@pytest.mark.parametrize("status", ["scheduled", "ready", "in_flight", "completed", "dead"])
async def test_a_conflict_is_settled_by_its_policy(client: Client, status: str) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "exists", "payload": "old"}
    job_id = await client.make(status, **unique, priority=7)
    before = await client.job(job_id)

    for policy in (None, "return"):
        answer = await again(client, policy, payload="new")
        assert (answer["id"], "replaced" in answer) == (job_id, False)
        assert await client.job(job_id) == before

    for payload in ("new", "x" * 1_000, "newer"):
        answer = await again(client, "replace_payload", payload=payload, queue="q", priority=1)
        waits = status in ("scheduled", "ready")
        assert (answer["id"], answer.get("replaced")) == (job_id, True if waits else None)
        expected = before | {"payload": payload} if waits else before
        assert await client.job(job_id) == expected

    answer = await again(client, "replace_dead", payload="new")
    assert answer["duplicate"] is (status != "dead")
    assert (answer["id"] != job_id) is (status == "dead")
    owner = (await client.get("/jobs/by-key", key="k")).doc
    assert owner["id"] == answer["id"]
    # A dead job that had to hand over its key stays, with its history.
    assert (await client.job(job_id))["status"] == status


async def test_a_replaced_payload_is_what_is_delivered_in_the_same_place(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "queued"}
    first = await client.enqueue(**unique, payload="x" * 2_000)
    second = await client.enqueue()
    both = [
        new_job(**unique, payload="a", on_conflict="replace_payload"),
        new_job(**unique, payload="b", on_conflict="replace_payload"),
    ]
    assert (await client.post("/jobs/bulk", {"jobs": both})).status == 200
    stream = await client.take(prefetch=2)
    jobs = await stream.jobs(2)
    assert [job["id"] for job in jobs] == [first["id"], second["id"]]
    assert jobs[0]["payload"] == "b"


@pytest.mark.parametrize("size", [1, 1_000])
async def test_a_payload_is_replaced_within_one_request(client: Client, size: int) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "queued", "on_conflict": "replace_payload"}
    jobs = [new_job(**unique, payload="x" * n) for n in (1_000, size)]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    first, second = reply.doc["jobs"]
    assert (second["id"], second["duplicate"], second["replaced"]) == (first["id"], True, True)
    assert (await client.job(first["id"]))["payload"] == "x" * size


@pytest.mark.parametrize(
    "fields",
    [
        {"on_conflict": "return"},
        {"on_conflict": "replace", "unique_key": "k"},
        {"on_conflict": "", "unique_key": "k"},
        {"on_conflict": 5, "unique_key": "k"},
    ],
    ids=repr,
)
async def test_a_policy_that_cannot_be_is_400_and_stores_nothing(
    client: Client, fields: Doc
) -> None:
    reply = await client.post("/jobs", new_job(**fields))
    assert reply.status == 400
    assert "on_conflict" in reply.error
    bulk = await client.post("/jobs/bulk", {"jobs": [new_job(), new_job(**fields)]})
    assert bulk.status == 400
    assert "jobs[1]" in bulk.error
    assert await client.count() == 0
