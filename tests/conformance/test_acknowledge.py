"""Success, bulk success and failure."""

import asyncio

import pytest

from .client import Client, Doc, ids


async def hold(client: Client, count: int) -> list[str]:
    """Ids of jobs that a stream holds until the test ends."""
    job_ids = await client.enqueue_many(count)
    stream = await client.take(prefetch=count)
    assert ids(await stream.jobs(count)) == job_ids
    return job_ids


async def test_success_needs_neither_body_nor_content_type(client: Client) -> None:
    job = await client.in_flight()
    reply = await client.send("POST", f"/jobs/{job['id']}/success")
    assert (reply.status, reply.body) == (204, b"")
    assert not await client.exists(job["id"])


async def test_an_empty_success_says_nothing_in_any_format(client: Client) -> None:
    bodies: list[tuple[str | None, bytes]] = [
        ("text/plain", b""),
        (None, b""),
        (client.wire.media_type, b""),
        (client.wire.media_type, client.wire.encode({})),
    ]
    for number, (content_type, body) in enumerate(bodies):
        job = await client.in_flight(queue=f"q{number}")
        headers = {"content-type": content_type}
        reply = await client.send("POST", f"/jobs/{job['id']}/success", body, headers)
        assert (reply.status, reply.body) == (204, b"")


async def test_a_success_that_is_not_understood_settles_nothing(client: Client) -> None:
    job = await client.in_flight()
    whole = client.wire.encode({"result": "half of it"})
    for body in (whole[:-3], client.wire.encode({"retention": 1})):
        headers = {"content-type": client.wire.media_type}
        reply = await client.send("POST", f"/jobs/{job['id']}/success", body, headers)
        assert reply.status == 400
        assert reply.error
    assert (await client.job(job["id"]))["status"] == "in_flight"


@pytest.mark.parametrize("status", ["scheduled", "ready", "completed", "dead"])
async def test_a_job_that_is_not_in_flight_cannot_be_acknowledged(
    client: Client, status: str
) -> None:
    job_id = await client.make(status)
    before = await client.job(job_id)
    single = await client.send("POST", f"/jobs/{job_id}/success")
    assert (single.status, single.error) == (404, "job not found in in-flight set")
    bulk = await client.post("/jobs/success", {"ids": [job_id]})
    assert (bulk.status, bulk.doc) == (422, {"not_found": [job_id]})
    failure = await client.post(f"/jobs/{job_id}/failure", {"message": "m"})
    assert (failure.status, failure.error) == (404, "job not found in in-flight set")
    assert await client.job(job_id) == before


async def test_a_second_success_is_404(client: Client) -> None:
    (job_id,) = await hold(client, 1)
    assert (await client.send("POST", f"/jobs/{job_id}/success")).status == 204
    assert (await client.send("POST", f"/jobs/{job_id}/success")).status == 404


async def test_bulk_success_of_all_is_204(client: Client) -> None:
    job_ids = await hold(client, 5)
    reply = await client.post("/jobs/success", {"ids": job_ids})
    assert (reply.status, reply.body) == (204, b"")
    assert await client.count() == 0


async def test_bulk_success_counts_an_id_once(client: Client) -> None:
    first, second = await hold(client, 2)
    reply = await client.post("/jobs/success", {"ids": [first, second, first, first]})
    assert reply.status == 204


async def test_a_partial_bulk_success_names_the_rest_in_input_order(client: Client) -> None:
    held = await hold(client, 2)
    waiting = (await client.enqueue(queue="other"))["id"]
    mixed = ["zzz", held[0], waiting, "aaa", "zzz", held[1], waiting]
    reply = await client.post("/jobs/success", {"ids": mixed})
    assert (reply.status, reply.doc) == (422, {"not_found": ["zzz", waiting, "aaa"]})
    assert ids(await client.jobs()) == [waiting]


async def test_ids_of_any_form_are_merely_not_found(client: Client) -> None:
    odd = ["", " ", "💥", "a,b", "*", "\x00", "0" * 26, "Z" * 26, "x" * 10_000, "null"]
    reply = await client.post("/jobs/success", {"ids": odd})
    assert (reply.status, reply.doc) == (422, {"not_found": odd})


async def test_bulk_success_needs_a_list_of_strings(client: Client) -> None:
    for doc in [
        {},
        {"ids": None},
        {"ids": "x"},
        {"ids": [1]},
        {"ids": [None]},
        [],
        {"ids": [["x"]]},
    ]:
        assert (await client.post("/jobs/success", doc)).status == 400, doc


async def test_one_bulk_success_can_carry_thousands(client: Client) -> None:
    job_ids = await hold(client, 5_000)
    await client.succeed(*job_ids)
    assert await client.count() == 0


async def test_any_connection_may_acknowledge_any_job(client: Client) -> None:
    job_ids = await hold(client, 2)
    async with Client(client.site, client.wire) as stranger:
        await stranger.succeed(job_ids[0])
        await stranger.fail(job_ids[1], kill=True)
    assert (await client.job(job_ids[1]))["status"] == "dead"


async def test_an_acknowledgement_after_the_return_is_refused(client: Client) -> None:
    job = await client.enqueue()
    stream = await client.take()
    await stream.job()
    await stream.close()
    await client.until(job["id"], status="ready")
    assert (await client.send("POST", f"/jobs/{job['id']}/success")).status == 404
    reply = await client.post("/jobs/success", {"ids": [job["id"]]})
    assert (reply.status, reply.doc) == (422, {"not_found": [job["id"]]})
    assert (await client.job(job["id"]))["status"] == "ready"


async def test_acknowledged_jobs_stay_done_when_their_stream_ends(client: Client) -> None:
    job_ids = await client.enqueue_many(4)
    stream = await client.take(prefetch=4)
    await stream.jobs(4)
    await client.succeed(job_ids[0])
    await client.fail(job_ids[1], kill=True)
    await stream.close()
    await client.until_count(2, status="ready")
    assert ids(await client.jobs(status="ready")) == job_ids[2:]
    assert ids(await client.jobs(status="dead")) == [job_ids[1]]


async def test_a_failure_needs_a_message(client: Client) -> None:
    job = await client.in_flight()
    documents: list[object] = [{}, {"message": None}, {"message": 5}, [], {"kill": True}]
    for doc in documents:
        assert (await client.post(f"/jobs/{job['id']}/failure", doc)).status == 400
    assert (await client.send("POST", f"/jobs/{job['id']}/failure")).status == 400
    assert (await client.job(job["id"]))["status"] == "in_flight"


async def test_a_failure_with_a_wrong_type_is_400_and_changes_nothing(client: Client) -> None:
    cases: list[Doc] = [
        {"error_type": 5},
        {"backtrace": ["line"]},
        {"retry_at": -1},
        {"retry_at": 1.5},
        {"retry_at": "soon"},
        {"kill": "yes"},
        {"kill": 1},
    ]
    for field in cases:
        job = await client.in_flight()
        reply = await client.post(f"/jobs/{job['id']}/failure", {"message": "m"} | field)
        assert reply.status == 400, field
        assert (await client.job(job["id"]))["status"] == "in_flight", field


async def test_a_failure_changes_neither_priority_nor_queue_nor_id(client: Client) -> None:
    job = await client.in_flight(queue="q", priority=7)
    failed = await client.fail(job["id"])
    fields = ("id", "queue", "priority", "type")
    assert [failed[field] for field in fields] == [job[field] for field in fields]


async def test_of_racing_acknowledgements_exactly_one_wins(client: Client) -> None:
    (job_id,) = await hold(client, 1)
    failure = {"message": "m", "kill": True}
    replies = await asyncio.gather(
        *(client.send("POST", f"/jobs/{job_id}/success") for _ in range(5)),
        *(client.post(f"/jobs/{job_id}/failure", failure) for _ in range(5)),
    )
    assert sum(reply.status < 300 for reply in replies) == 1
    assert {reply.status for reply in replies} <= {200, 204, 404}
