"""The retention of a finished job: changed, re-based from now, and over to the millisecond."""

import pytest

from .client import Client, Doc, new_job

FINISHED = ["completed", "dead", "cancelled"]


def field(status: str) -> str:
    return "completed_ms" if status == "completed" else "dead_ms"


@pytest.mark.parametrize("status", FINISHED)
async def test_a_change_counts_from_now(client: Client, status: str) -> None:
    job_id = await client.make(status)
    client.site.clock.advance(1_000)
    other = "dead_ms" if status == "completed" else "completed_ms"
    for body, kept_ms in [
        ({field(status): 20}, 20),
        ({field(status): 200, other: 1}, 200),
        ({}, 60_000),
        ({field(status): None}, 60_000),
        ({other: 5}, 60_000),
    ]:
        reply = await client.patch(f"/jobs/{job_id}/retention", body)
        assert reply.status == 200
        assert reply.doc["purge_at"] == client.site.now + kept_ms
        assert (await client.job(job_id))["purge_at"] == client.site.now + kept_ms
    await client.site.restart()
    client.site.clock.advance(59_999)
    assert await client.exists(job_id)
    client.site.clock.advance(1)
    assert not await client.exists(job_id)


@pytest.mark.parametrize("status", FINISHED)
async def test_a_retention_of_zero_ends_the_job(client: Client, status: str) -> None:
    job_id = await client.make(status, payload="x" * 1_000)
    reply = await client.patch(f"/jobs/{job_id}/retention", {field(status): 0})
    assert (reply.status, reply.doc["status"], "purge_at" in reply.doc) == (200, status, False)
    assert not await client.exists(job_id)
    assert await client.count() == 0


async def test_a_longer_retention_outlives_the_reaper(client: Client) -> None:
    job_id = await client.make("completed", retention={"completed_ms": 20})
    await client.patch(f"/jobs/{job_id}/retention", {"completed_ms": 200_000})
    client.site.clock.advance(100_000)
    assert await client.count() == 1
    await client.patch(f"/jobs/{job_id}/retention", {"completed_ms": 10})
    client.site.clock.advance(100_000)
    assert (await client.delete("/jobs", queue="none")).doc == {"deleted": 0}
    assert not await client.exists(job_id)


@pytest.mark.parametrize("status", ["scheduled", "ready", "in_flight"])
async def test_an_unfinished_job_has_no_retention_yet(client: Client, status: str) -> None:
    job_id = await client.make(status)
    before = await client.job(job_id)
    reply = await client.patch(f"/jobs/{job_id}/retention", {"completed_ms": 5})
    assert (reply.status, reply.headers["zq-error"]) == (409, "not_finished")
    assert reply.doc["status"] == status
    assert await client.job(job_id) == before


async def test_bad_changes_are_refused(client: Client) -> None:
    job_id = await client.make("completed")
    before = await client.job(job_id)
    bodies: list[object] = [
        None,
        [],
        {"completed_ms": -1},
        {"completed_ms": "5"},
        {"completed_ms": 1.5},
        {"dead_ms": 2**64},
    ]
    for body in bodies:
        reply = await client.patch(f"/jobs/{job_id}/retention", body)
        assert (reply.status, bool(reply.error)) == (400, True), body
    assert (await client.patch("/jobs/unknown/retention", {})).status == 404
    assert (await client.send("PATCH", f"/jobs/{job_id}/retention")).status == 400
    assert await client.job(job_id) == before


async def test_whatever_reads_treats_an_expired_job_as_gone_to_20_ms(client: Client) -> None:
    await client.tire_the_reaper()
    unique: Doc = {"unique_key": "k", "unique_while": "exists"}
    job = await client.in_flight(**unique, retention={"completed_ms": 20})
    job_id = job["id"]
    assert (await client.post(f"/jobs/{job_id}/success", {"result": 1})).status == 204
    targets = (
        f"/jobs/{job_id}",
        f"/jobs/{job_id}/result",
        f"/jobs/{job_id}/errors",
        "/jobs/by-key?key=k",
    )

    client.site.clock.advance(19)
    for target in targets:
        assert (await client.send("GET", target)).status == 200, target
    assert (await client.post("/jobs", new_job(**unique))).doc["duplicate"] is True
    assert (await client.count(), len(await client.jobs())) == (1, 1)

    client.site.clock.advance(1)
    for target in targets:
        assert (await client.send("GET", target)).status == 404, target
    assert (await client.count(), await client.jobs()) == (0, [])
    assert (await client.get("/queues")).doc == {"queues": []}
    for method, target, body in [
        ("PATCH", f"/jobs/{job_id}/retention", {"completed_ms": 60_000}),
        ("POST", f"/jobs/{job_id}/cancel", {"force": True}),
        ("POST", "/jobs/by-key/cancel?key=k", {"force": True}),
        ("POST", f"/jobs/{job_id}/success", {"lease": 1}),
    ]:
        assert (await client.call(method, target, body)).status == 404, target
    assert (await client.post("/jobs", new_job(**unique))).doc["duplicate"] is False
