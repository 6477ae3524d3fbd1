"""Over Zizq's door: keys of a queue, dead-letter queues of one job, tries without back-off."""

import pytest

from .client import Client

UNIQUE = {"unique_key": "k", "unique_in": "queue"}


async def test_jobs_of_two_queues_may_have_one_key_of_their_queues(client: Client) -> None:
    first = await client.enqueue(queue="a", **UNIQUE)
    assert first["unique_in"] == "queue"
    other = await client.post("/jobs", {"queue": "b", "type": "t", "payload": 1, **UNIQUE})
    assert other.status == 201
    again = await client.post("/jobs", {"queue": "a", "type": "t", "payload": 1, **UNIQUE})
    assert (again.status, again.doc["id"]) == (200, first["id"])
    spanning = await client.enqueue(queue="a", unique_key="k")
    assert spanning["id"] != first["id"] and "unique_in" not in spanning
    assert (await client.get("/jobs/by-key", key="k", queue="a")).doc["id"] == first["id"]
    assert (await client.get("/jobs/by-key", key="k")).doc["id"] == spanning["id"]


async def test_a_job_takes_its_key_along_and_stays_where_another_has_it_there(
    client: Client,
) -> None:
    moved = (await client.enqueue(queue="a", **UNIQUE))["id"]
    await client.change(moved, queue="b")
    assert (await client.get("/jobs/by-key", key="k", queue="b")).doc["id"] == moved
    assert (await client.get("/jobs/by-key", key="k", queue="a")).status == 404
    late = (await client.enqueue(queue="a", **UNIQUE))["id"]
    refused = await client.patch(f"/jobs/{late}", {"queue": "b"})
    assert (refused.status, refused.headers["zq-error"]) == (409, "key_taken")
    assert (await client.job(late))["queue"] == "a"
    assert (await client.get("/jobs/by-key", key="k", queue="b")).doc["id"] == moved


async def test_an_owner_takes_over_the_content_of_a_duplicate(client: Client) -> None:
    job = await client.enqueue(queue="a", meta={"v": 1}, **UNIQUE)
    late = {"queue": "a", "type": "t", "payload": 2, "meta": {"v": 2}, "content_type": "a/b"}
    reply = await client.post("/jobs", late | UNIQUE | {"on_conflict": "replace_content"})
    assert (reply.doc["id"], reply.doc["replaced"]) == (job["id"], True)
    now = await client.job(job["id"])
    assert (now["payload"], now["meta"], now["content_type"]) == (2, {"v": 2}, "a/b")


async def test_a_job_goes_where_it_says_after_so_many_failures_and_home(client: Client) -> None:
    letter = {"dead_letter": "graves", "dead_letter_after": 2, "retry_limit": 9}
    job = await client.in_flight(queue="a", **letter)
    first = await client.fail(job["id"], at_once=True)
    assert (first["status"], first["ready_at"]) == ("scheduled", client.site.now)
    await client.until(job["id"], status="in_flight")
    moved = await client.fail(job["id"], at_once=True)
    assert (moved["queue"], moved["origin"]) == ("graves", "a")
    assert moved["died_at"] == client.site.now
    home = await client.send("POST", f"/jobs/{job['id']}/retry?home=true")
    assert (home.status, home.doc["queue"]) == (200, "a")
    assert "origin" not in home.doc and "died_at" not in home.doc
    assert (await client.send("POST", f"/jobs/{job['id']}/retry?home=true")).status == 409


@pytest.mark.parametrize(
    "fields",
    [{"unique_in": "queue"}, {"unique_key": "k", "unique_in": "type"}, {"dead_letter_after": 1}],
)
async def test_what_belongs_together_is_asked_for(
    client: Client, fields: dict[str, object]
) -> None:
    reply = await client.post("/jobs", {"queue": "a", "type": "t", "payload": 1, **fields})
    assert reply.status == 400 and reply.error


async def test_a_queue_without_a_name_does_not_mean_the_key_of_all_queues(client: Client) -> None:
    job = await client.enqueue(queue="a", unique_key="k")
    reply = await client.post("/jobs/by-key/cancel?key=k&queue=", {})
    assert reply.status == 400
    assert reply.error.startswith("invalid query parameters: `queue` is empty")
    assert (await client.job(job["id"]))["status"] == "ready"
