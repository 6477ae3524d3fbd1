"""Claimants who ask for more time, and claimants who give jobs back."""

import pytest

from .claims import claim, claim_one
from .client import Client, Doc, ids


async def test_extending_moves_the_deadline_from_now_on(client: Client) -> None:
    job = await client.enqueue()
    taken = await claim_one(client, lease_ms=1_000)
    for body in ({"lease_ms": 1_000, "lease": taken["lease"]}, {"lease_ms": 1_000}):
        client.site.clock.advance(900)
        reply = await client.post(f"/jobs/{job['id']}/extend", body)
        assert (reply.status, reply.doc) == (200, {"lease_until": client.site.now + 1_000})
    bulk = await client.post("/jobs/extend", {"items": [{"id": job["id"]}], "lease_ms": 5_000})
    assert (bulk.status, bulk.doc) == (200, {"lease_until": client.site.now + 5_000})
    client.site.clock.advance(5_000)
    assert (await client.job(job["id"]))["status"] == "in_flight"
    client.site.clock.advance(1)
    await client.until(job["id"], status="ready")


async def test_a_lease_can_be_made_shorter(client: Client) -> None:
    job = await client.enqueue()
    await claim_one(client, lease_ms=60_000)
    assert (await client.post(f"/jobs/{job['id']}/extend", {"lease_ms": 10})).status == 200
    client.site.clock.advance(11)
    await client.until(job["id"], status="ready")


async def test_a_released_job_is_ready_at_once_in_its_place_and_at_no_cost(client: Client) -> None:
    first, second = await client.enqueue_many(2)
    await claim_one(client)
    assert (await client.send("POST", f"/jobs/{first}/release")).status == 204
    again = await claim_one(client)
    assert (again["id"], again["lease"], again["attempts"]) == (first, 2, 0)
    assert "stalls" not in again
    assert (await client.post("/jobs/release", {"items": [{"id": first}]})).status == 204
    assert ids(await claim(client, max=2)) == [first, second]


async def test_a_job_released_with_a_delay_is_scheduled(client: Client) -> None:
    job = await client.enqueue()
    taken = await claim_one(client)
    body = {"delay_ms": 5_000, "lease": taken["lease"]}
    assert (await client.post(f"/jobs/{job['id']}/release", body)).status == 204
    waiting = await client.job(job["id"])
    due = client.site.now + 5_000
    assert (waiting["status"], waiting["ready_at"], waiting["attempts"]) == ("scheduled", due, 0)
    assert await claim(client) == []
    client.site.clock.advance(5_000)
    await client.until(job["id"], status="ready")


async def test_a_released_job_takes_its_unique_key_back(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "queued"}
    job = await client.enqueue(**unique)
    await claim_one(client)
    await client.send("POST", f"/jobs/{job['id']}/release")
    reply = await client.post("/jobs", {"queue": "default", "type": "t", "payload": 1} | unique)
    assert (reply.status, reply.doc["id"]) == (200, job["id"])


MEANINGLESS: list[tuple[str, Doc]] = [
    ("/jobs/{id}/extend", {}),
    ("/jobs/{id}/extend", {"lease_ms": 0}),
    ("/jobs/{id}/extend", {"lease_ms": 2**32}),
    ("/jobs/{id}/release", {"delay_ms": -1}),
    ("/jobs/{id}/release", {"delay_ms": 2**64}),
    ("/jobs/extend", {"items": [], "lease_ms": 1}),
    ("/jobs/extend", {"items": [{"id": "{id}"}]}),
    ("/jobs/extend", {"items": [{"id": "{id}"}] * 2, "lease_ms": 1}),
    ("/jobs/extend", {"items": [{}], "lease_ms": 1}),
    ("/jobs/release", {"items": []}),
    ("/jobs/release", {}),
    ("/jobs/release", {"items": [{"id": "{id}", "lease": "x"}]}),
]


async def test_what_cannot_be_meant_is_400_and_changes_nothing(client: Client) -> None:
    job = await client.enqueue()
    await claim_one(client)
    before = await client.job(job["id"])
    for target, body in MEANINGLESS:
        items = [
            {name: job["id"] if value == "{id}" else value for name, value in item.items()}
            for item in body.get("items", [])
        ]
        sent = body | {"items": items} if "items" in body else body
        reply = await client.post(target.replace("{id}", job["id"]), sent)
        assert (reply.status, reply.headers["zq-error"]) == (400, "invalid_request")
        assert await client.job(job["id"]) == before


@pytest.mark.settings(max_bulk_items=2)
async def test_too_many_items_are_413(client: Client) -> None:
    items = [{"id": str(number)} for number in range(3)]
    for target, more in (("/jobs/extend", {"lease_ms": 1}), ("/jobs/release", {})):
        assert (await client.post(target, {"items": items, **more})).status == 413
