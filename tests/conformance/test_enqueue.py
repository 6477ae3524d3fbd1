"""POST /jobs and POST /jobs/bulk."""

import pytest

from .client import Client, Doc, ids, new_job


async def test_an_enqueue_is_201_and_readable_at_once(client: Client) -> None:
    reply = await client.post("/jobs", new_job(payload="p"))
    assert reply.status == 201
    assert (await client.job(reply.doc["id"]))["payload"] == "p"


async def test_the_payload_may_be_null_but_not_absent(client: Client) -> None:
    job = await client.enqueue(payload=None)
    assert (await client.job(job["id"]))["payload"] is None
    assert (await client.post("/jobs", new_job(payload=...))).status == 400


async def test_queue_and_type_are_required(client: Client) -> None:
    assert (await client.post("/jobs", new_job(queue=...))).status == 400
    assert (await client.post("/jobs", new_job(type=...))).status == 400
    assert await client.count() == 0


async def test_a_retention_may_be_partial_or_empty(client: Client) -> None:
    for retention in ({"completed_ms": 5}, {"dead_ms": 5}, {"completed_ms": 5, "dead_ms": 6}):
        job = await client.enqueue(retention=retention)
        assert (await client.job(job["id"]))["retention"] == retention
    await client.enqueue(retention={})


@pytest.mark.parametrize("size", [0, 100, 511, 512, 513, 4_096, 70_000, 2_000_000])
async def test_payloads_of_any_size_come_back_whole(client: Client, size: int) -> None:
    payload = "é" * (size // 2) + "x" * (size % 2)
    job = await client.enqueue(payload=payload)
    assert (await client.job(job["id"]))["payload"] == payload
    stream = await client.take()
    assert (await stream.job())["payload"] == payload
    await client.fail(job["id"], retry_at=client.site.now + 60_000)
    assert (await client.jobs())[0]["payload"] == payload


async def test_a_bulk_enqueue_answers_in_the_order_of_its_input(client: Client) -> None:
    jobs = [new_job(queue=f"q{n % 3}", priority=n, payload=n) for n in range(20)]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201
    assert [job["priority"] for job in reply.doc["jobs"]] == list(range(20))
    issued = ids(reply.doc["jobs"])
    assert issued == sorted(set(issued))
    assert [job["payload"] for job in await client.jobs()] == list(range(20))


async def test_a_bulk_enqueue_mixes_all_kinds_of_jobs(client: Client) -> None:
    options: list[Doc] = [
        {},
        {"payload": "x" * 5_000},
        {"ready_at": client.site.now + 5_000},
        {"retry_limit": 2, "retention": {"dead_ms": 1}},
        {"unique_key": "k"},
        {"unique_key": "k", "payload": 2},
    ]
    reply = await client.post("/jobs/bulk", {"jobs": [new_job(**fields) for fields in options]})
    assert reply.status == 201
    found = reply.doc["jobs"]
    assert [job["status"] for job in found] == ["ready"] * 2 + ["scheduled"] + ["ready"] * 3
    assert [job["duplicate"] for job in found] == [False] * 5 + [True]
    assert found[5]["id"] == found[4]["id"]
    assert found[3]["retry_limit"] == 2
    assert await client.count() == 5


async def test_one_invalid_element_and_nothing_is_stored(client: Client) -> None:
    for wrong in [
        new_job(queue=""),
        new_job(type="a*"),
        new_job(payload=...),
        new_job(priority=-1),
        new_job(unique_while="queued"),
        "job",
        [],
    ]:
        for position in (0, 3):
            jobs: list[object] = [new_job() for _ in range(3)]
            jobs.insert(position, wrong)
            reply = await client.post("/jobs/bulk", {"jobs": jobs})
            assert reply.status == 400, wrong
            assert f"jobs[{position}]" in reply.error, wrong
        assert await client.count() == 0, wrong


async def test_an_empty_bulk_enqueue_is_201_and_empty(client: Client) -> None:
    reply = await client.post("/jobs/bulk", {"jobs": []})
    assert (reply.status, reply.doc) == (201, {"jobs": []})


async def test_a_bulk_enqueue_is_200_only_if_every_element_is_a_duplicate(client: Client) -> None:
    keyed = [new_job(unique_key="a"), new_job(unique_key="b")]
    assert (await client.post("/jobs/bulk", {"jobs": keyed})).status == 201
    repeated = await client.post("/jobs/bulk", {"jobs": keyed})
    assert repeated.status == 200
    assert [job["duplicate"] for job in repeated.doc["jobs"]] == [True, True]
    mixed = await client.post("/jobs/bulk", {"jobs": [*keyed, new_job()]})
    assert mixed.status == 201
    assert [job["duplicate"] for job in mixed.doc["jobs"]] == [True, True, False]


async def test_a_bulk_body_is_an_object_with_a_list(client: Client) -> None:
    for doc in [{}, {"jobs": None}, {"jobs": {}}, {"jobs": "x"}, [], 5, None]:
        assert (await client.post("/jobs/bulk", doc)).status == 400, doc


async def test_ten_thousand_jobs_fit_in_one_request(client: Client) -> None:
    job_ids = await client.enqueue_many(10_000)
    assert len(set(job_ids)) == 10_000
    assert await client.count() == 10_000


async def test_stored_jobs_reach_a_waiting_stream_in_either_way(client: Client) -> None:
    stream = await client.take(prefetch=0)
    single = await client.enqueue(payload=1)
    assert (await stream.job())["id"] == single["id"]
    bulk = await client.enqueue_many(50)
    assert ids(await stream.jobs(50)) == bulk
