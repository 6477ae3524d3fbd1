"""Schemas of queues, which hold whatever door a job comes by, and replays of what was completed."""

from typing import Any

import pytest

from .client import Client, Doc, new_job

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}


async def put(client: Client, queue: str = "q", schema: Any = ORDER) -> Doc:
    reply = await client.call("PUT", f"/queues/{queue}/schema", {"schema": schema})
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def test_a_schema_is_stored_counted_listed_and_taken_away(client: Client) -> None:
    path = "/queues/a%2Fb/schema"
    first = await put(client, "a%2Fb")
    assert first == {"queue": "a/b", "schema": ORDER, "version": 1, "updated_at": client.site.now}
    assert (await put(client, "a%2Fb", "string"))["version"] == 2
    assert (await client.get(path)).doc["schema"] == "string"
    assert [each["queue"] for each in (await client.get("/queues/schemas")).doc["schemas"]] == [
        "a/b"
    ]
    assert (await client.send("DELETE", path)).status == 204
    missing = await client.get(path)
    assert (missing.status, missing.headers["zq-error"]) == (404, "schema_not_found")
    assert (await client.send("DELETE", path)).status == 204


@pytest.mark.parametrize("schema", ["nothing", {"type": "enum", "name": "E"}, {}], ids=str)
async def test_what_is_no_schema_is_refused(client: Client, schema: Any) -> None:
    refused = await client.call("PUT", "/queues/q/schema", {"schema": schema})
    assert (refused.status, refused.headers["zq-error"]) == (400, "invalid_schema")
    await client.enqueue(queue="q", payload=1)


async def test_a_job_that_does_not_match_is_refused_by_every_door(client: Client) -> None:
    await put(client)
    good, bad = {"n": 1}, {"n": "one"}
    await client.enqueue(queue="q", payload=good)
    refused = [
        await client.post("/jobs", new_job(queue="q", payload=bad)),
        await client.post(
            "/jobs/bulk", {"jobs": [new_job(queue="q", payload=p) for p in (good, bad)]}
        ),
        await client.call("POST", "/queues/q/push", bad),
    ]
    assert {(each.status, each.headers["zq-error"]) for each in refused} == {
        (422, "schema_mismatch")
    }
    assert 'field "n" must be of type int' in refused[0].error
    assert refused[1].error == f"jobs[1]: {refused[0].error}"
    assert [each.headers.get("zq-error-index") for each in refused] == [None, "1", None]
    assert await client.count(queue="q") == 1
    await client.enqueue(queue="other", payload=bad)


async def test_a_schema_outlives_a_restart_and_ends_with_a_reset(client: Client) -> None:
    await put(client)
    await client.site.restart()
    assert (await client.post("/jobs", new_job(queue="q", payload={}))).status == 422
    assert (await client.send("POST", "/reset")).status == 204
    assert (await client.get("/queues/schemas")).doc == {"schemas": []}
    await client.enqueue(queue="q", payload={})


async def test_completed_jobs_that_are_kept_come_back(client: Client) -> None:
    refused = await client.send("POST", "/queues/q/replay")
    assert refused.status == 422, refused
    assert (refused.status, refused.headers["zq-error"]) == (422, "not_archived")
    await client.call("PUT", "/queues/q/settings", {"retention": {"completed_ms": 60_000}})
    early = await client.make("completed", queue="q", payload={"n": "early"}, priority=3)
    client.site.clock.advance(10_000)
    late = client.site.now
    await client.make("completed", queue="q", payload={"n": "late"})
    await put(client)
    kept = {"schema_mismatch": 2}
    assert (await client.send("POST", "/queues/q/replay")).doc == {"replayed": 0, "kept": kept}
    await client.send("DELETE", "/queues/q/schema")
    replayed = await client.call("POST", "/queues/q/replay", {"since": late})
    assert replayed.doc == {"replayed": 1}
    assert (await client.send("POST", "/queues/q/replay")).doc == {"replayed": 2}
    stream = await client.take(queue="q", prefetch=9)
    taken = [await stream.job() for _ in range(3)]
    assert sorted(job["payload"]["n"] for job in taken) == ["early", "late", "late"]
    assert {job["attempts"] for job in taken} == {0} and early not in {job["id"] for job in taken}
    too_early = await client.call("POST", "/queues/q/replay", {"since": late - 60_001})
    assert (too_early.status, too_early.headers["zq-error"]) == (422, "out_of_archive")
    await stream.close()


async def test_the_schedule_of_cleaning_is_stored(client: Client) -> None:
    assert (await client.get("/cleaning")).doc == {"schedule": ""}
    assert (await client.call("PUT", "/cleaning", {"schedule": "@daily"})).status == 200
    wrong = await client.call("PUT", "/cleaning", {"schedule": "now and then"})
    assert wrong.status == 422
    await client.site.restart()
    assert (await client.get("/cleaning")).doc == {"schedule": "@daily"}


async def test_new_jobs_match_the_schemas_of_all_targets_of_their_queue(client: Client) -> None:
    await client.call("PUT", "/queues/q/settings", {"fan_out": ["q@a", "q@b"]})
    await put(client, "q@b")
    jobs = [new_job(queue="q", payload={"n": n}) for n in (1, "one")]
    refused = await client.post("/jobs/bulk", {"jobs": jobs})
    assert (refused.status, refused.headers["zq-error"]) == (422, "schema_mismatch")
    assert refused.headers["zq-error-index"] == "1"
    assert await client.count() == 0
    await client.enqueue(queue="q", payload={"n": 1})
    assert await client.count() == 2


async def test_a_new_target_gets_the_jobs_that_match_its_schema(client: Client) -> None:
    for n in (1, "one", 2):
        await client.enqueue(queue="q", payload={"n": n})
    for target in ("q@a", "q@b"):
        await put(client, target)
        assert (await client.send("PUT", f"/queues/q/targets/{target}")).status == 201
    assert [await client.count(queue=queue) for queue in ("q", "q@a", "q@b")] == [1, 2, 2]


async def test_a_duplicate_from_another_queue_does_not_bring_a_payload_that_does_not_match(
    client: Client,
) -> None:
    await put(client)
    key = {"unique_key": "k", "on_conflict": "replace_payload"}
    owner = await client.enqueue(queue="q", payload={"n": 1}, **key)
    again = await client.post("/jobs", new_job(queue="r", payload={"n": "one"}, **key))
    assert (again.doc["id"], again.doc["duplicate"]) == (owner["id"], True)
    assert (await client.job(owner["id"]))["payload"] == {"n": 1}
    await client.post("/jobs", new_job(queue="r", payload={"n": 2}, **key))
    assert (await client.job(owner["id"]))["payload"] == {"n": 2}
