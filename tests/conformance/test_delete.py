"""DELETE: one job by id, many by filter, everything."""

from typing import Any

import pytest

from .client import Client, Doc, ids

STATES = ["scheduled", "ready", "in_flight", "completed", "dead"]


async def deleted(client: Client, **filters: Any) -> int:
    reply = await client.delete("/jobs", **filters)
    assert reply.status == 200, reply.doc
    assert list(reply.doc) == ["deleted"]
    count: int = reply.doc["deleted"]
    return count


async def test_an_unknown_job_is_404(client: Client) -> None:
    for job_id in ("0" * 26, "x"):
        reply = await client.delete(f"/jobs/{job_id}")
        assert (reply.status, reply.error) == (404, "job not found")


async def test_a_deleted_job_leaves_no_trace(client: Client) -> None:
    job_id = await client.make("dead")
    assert (await client.get(f"/jobs/{job_id}/errors")).doc["errors"]
    assert (await client.delete(f"/jobs/{job_id}")).status == 204
    assert (await client.get(f"/jobs/{job_id}/errors")).status == 404
    assert (await client.get(f"/jobs/{job_id}/errors/1")).status == 404
    assert (await client.get("/queues")).doc == {"queues": []}
    assert await client.count() == 0


async def test_a_deleted_job_in_flight_cannot_be_acknowledged(client: Client) -> None:
    job = await client.in_flight()
    assert (await client.delete(f"/jobs/{job['id']}")).status == 204
    assert (await client.send("POST", f"/jobs/{job['id']}/success")).status == 404
    assert (await client.post(f"/jobs/{job['id']}/failure", {"message": "m"})).status == 404


async def test_a_deleted_scheduled_job_never_arrives(client: Client) -> None:
    stream = await client.take()
    job_id = await client.make("scheduled")
    assert (await client.delete(f"/jobs/{job_id}")).status == 204
    client.site.clock.advance(120_000)
    await client.heartbeat(stream)
    assert await client.count() == 0


async def test_a_delete_without_filters_deletes_everything(client: Client) -> None:
    for state in STATES:
        await client.make(state, queue=state, unique_key=state, unique_while="exists")
    assert await deleted(client) == 5
    assert await client.count() == 0
    assert (await client.get("/queues")).doc == {"queues": []}
    assert await deleted(client) == 0
    for state in STATES:
        await client.enqueue(unique_key=state, unique_while="exists")


@pytest.mark.settings(reaper_check_interval=3_600_000)
async def test_a_delete_without_filters_reaches_expired_jobs(client: Client) -> None:
    await client.tire_the_reaper()
    await client.make("dead")
    client.site.clock.advance(60_000)
    assert await client.count() == 0
    assert await deleted(client) == 1


@pytest.mark.parametrize(
    "filters",
    [
        {"queue": "a"},
        {"type": "wanted"},
        {"priority": "7"},
        {"filter": '. == "wanted"'},
        {"ready_at": "..5"},
        {"attempts": "0", "queue": "a"},
        {"queue": "a,z", "type": "wanted", "status": "ready,dead"},
    ],
    ids=str,
)
async def test_a_delete_by_filter_deletes_what_matches(client: Client, filters: Doc) -> None:
    for _ in range(2):
        await client.enqueue(queue="a", type="wanted", priority=7, payload="wanted", ready_at=5)
    other = await client.enqueue(queue="b")
    assert await deleted(client, **filters) == 2
    assert ids(await client.jobs()) == [other["id"]]
    assert await deleted(client, queue="nobody") == 0


@pytest.mark.parametrize("state", STATES)
async def test_a_delete_by_status_works_in_any_state(client: Client, state: str) -> None:
    made = {name: await client.make(name, queue=name) for name in STATES}
    assert await deleted(client, status=state) == 1
    left = sorted(job_id for name, job_id in made.items() if name != state)
    assert ids(await client.jobs()) == left


async def test_a_delete_by_ids_skips_unknown_ones(client: Client) -> None:
    issued = await client.enqueue_many(3)
    assert await deleted(client, id=f"{issued[2]},{'0' * 26},{issued[0]}") == 2
    assert ids(await client.jobs()) == [issued[1]]


async def test_thousands_are_deleted_and_the_count_is_exact(client: Client) -> None:
    await client.enqueue_many(2_500, queue="a")
    kept = await client.enqueue_many(10, queue="b")
    assert await deleted(client, queue="a") == 2_500
    assert ids(await client.jobs()) == kept


async def test_acknowledgements_pass_while_thousands_are_deleted(client: Client) -> None:
    held = await client.in_flight(queue="held")
    await client.enqueue_many(5_000, queue="a", payload=1)
    assert await deleted(client, filter=". == 1") == 5_000
    await client.succeed(held["id"])
    assert await client.count() == 0


@pytest.mark.parametrize(
    "query", ["from=x", "order=asc", "limit=5", "colour=red", "status=x", "priority=2..1", "id=x"]
)
async def test_bad_parameters_are_400_and_delete_nothing(client: Client, query: str) -> None:
    await client.enqueue()
    assert (await client.delete(f"/jobs?{query}")).status == 400
    assert (await client.delete("/jobs", filter="nope(")).status == 400
    assert await client.count() == 1
