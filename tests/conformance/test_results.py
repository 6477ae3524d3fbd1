"""Results: sent with a success, kept with the job, shown until its retention is over."""

from itertools import count
from typing import Any

import pytest

from .client import JSON, MSGPACK, Client, Doc
from .site import Site

KEPT = {"completed_ms": 60_000}
RESULTS: list[Any] = [
    None,
    False,
    0,
    "",
    [],
    {},
    1.0,
    2**64 - 1,
    "é\n\u0000😀",
    {"a": [1, {"b": None}]},
    "x" * 510,
    "x" * 511,
    "é" * 300,
    "x" * 100_000,
]


_queues = map("queue {}".format, count(1))


async def held(client: Client, count: int = 1, **fields: Any) -> list[Doc]:
    """Jobs of a queue of their own that a stream holds until the test ends, as it got them."""
    queue = next(_queues)
    await client.enqueue_many(count, queue=queue, **fields)
    stream = await client.take(prefetch=count, queue=queue)
    return await stream.jobs(count)


async def finish(client: Client, **body: Any) -> str:
    """The id of a job that was acknowledged with this body."""
    (job,) = await held(client, retention=KEPT)
    reply = await client.post(f"/jobs/{job['id']}/success", body)
    assert (reply.status, reply.body) == (204, b"")
    return str(job["id"])


async def test_a_result_is_shown_on_the_job_wherever_it_is_read(client: Client) -> None:
    jobs = []
    for result in RESULTS:
        job_id = await finish(client, result=result)
        job = await client.job(job_id)
        assert repr(job["result"]) == repr(result)
        jobs.append(job)
        answer = await client.get(f"/jobs/{job_id}/result")
        shown = {"status": "completed", "result": result}
        assert (answer.status, repr(answer.doc)) == (200, repr(shown))
    assert await client.jobs() == jobs
    await client.site.restart()
    for job, result in zip(jobs, RESULTS, strict=True):
        assert repr((await client.job(job["id"]))["result"]) == repr(result)


async def test_a_result_that_is_null_differs_from_none(client: Client) -> None:
    without = await finish(client)
    assert "result" not in await client.job(without)
    assert (await client.get(f"/jobs/{without}/result")).doc == {"status": "completed"}
    with_null = await finish(client, result=None)
    assert (await client.job(with_null))["result"] is None


async def test_a_result_is_the_same_in_both_formats(site: Site) -> None:
    async with Client(site, JSON) as json_client, Client(site, MSGPACK) as msgpack_client:
        for number, result in enumerate(RESULTS):
            senders = (json_client, msgpack_client)
            job_id = await finish(senders[number % 2], result=result)
            assert await json_client.job(job_id) == await msgpack_client.job(job_id)


async def test_many_results_come_with_one_request_beside_plain_ids(client: Client) -> None:
    jobs = await held(client, 5, retention=KEPT)
    ids = [job["id"] for job in jobs]
    items = [{"id": id, "result": n} for n, id in enumerate(ids[:3])]
    items[1]["result"] = "x" * 1_000
    items[2] |= {"lease": jobs[2]["lease"], "retention": {"completed_ms": 0}}
    reply = await client.post("/jobs/success", {"items": items, "ids": ids[3:]})
    assert (reply.status, reply.body) == (204, b"")
    shown = [job.get("result", ...) for job in await client.jobs(status="completed")]
    assert shown == [0, "x" * 1_000, ..., ...]
    assert not await client.exists(ids[2])


async def test_a_retention_that_comes_with_the_success_overrides_the_jobs_own(
    client: Client,
) -> None:
    start = client.site.now
    for own, said, purge_at in [
        (60_000, {"completed_ms": 5}, start + 5),
        (0, {"completed_ms": 7}, start + 7),
        (9, {}, start + 9),
        (9, {"dead_ms": 1}, start + 9),
        (9, None, start + 9),
    ]:
        (job,) = await held(client, retention={"completed_ms": own})
        body = {"result": 1, "retention": said}
        assert (await client.post(f"/jobs/{job['id']}/success", body)).status == 204
        assert (await client.job(job["id"]))["purge_at"] == purge_at
    (job,) = await held(client, retention={"completed_ms": 60_000})
    body = {"result": 1, "retention": {"completed_ms": 0}}
    assert (await client.post(f"/jobs/{job['id']}/success", body)).status == 204
    assert not await client.exists(job["id"])


# Leases


async def test_a_stale_lease_is_refused_and_the_current_one_settles(client: Client) -> None:
    (first,) = await held(client, retention=KEPT)
    assert first["lease"] == 1
    await client.site.restart()
    stream = await client.take()
    second = await stream.job()
    assert (second["id"], second["lease"]) == (first["id"], 2)

    stale = {"result": "late", "lease": first["lease"]}
    single = await client.post(f"/jobs/{first['id']}/success", stale)
    assert (single.status, single.headers["zq-error"]) == (409, "stale_lease")
    assert list(single.doc) == ["error"]
    items = {"items": [{"id": first["id"], "lease": 1}, {"id": "unknown", "lease": 1}]}
    bulk = await client.post("/jobs/success", items)
    assert (bulk.status, bulk.doc) == (422, {"not_found": ["unknown"], "stale": [first["id"]]})
    assert (await client.job(first["id"]))["status"] == "in_flight"

    current = {"result": "in time", "lease": second["lease"]}
    assert (await client.post(f"/jobs/{first['id']}/success", current)).status == 204
    assert (await client.job(first["id"]))["result"] == "in time"


@pytest.mark.parametrize("status", ["ready", "scheduled", "completed", "dead"])
async def test_a_lease_of_a_job_that_nobody_holds_is_stale(client: Client, status: str) -> None:
    job_id = await client.make(status)
    before = await client.job(job_id)
    reply = await client.post(f"/jobs/{job_id}/success", {"lease": 1, "result": 1})
    assert reply.status == 409
    assert (await client.post(f"/jobs/{job_id}/success", {"result": 1})).status == 404
    assert await client.job(job_id) == before


async def test_a_lease_of_a_job_that_is_gone_is_not_found(client: Client) -> None:
    (job,) = await held(client)
    await client.succeed(job["id"])
    reply = await client.post(f"/jobs/{job['id']}/success", {"lease": job["lease"]})
    assert reply.status == 404
    bulk = await client.post("/jobs/success", {"items": [{"id": job["id"], "lease": 1}]})
    assert (bulk.status, bulk.doc) == (422, {"not_found": [job["id"]]})


async def test_a_stale_acknowledgement_frees_no_slot_of_the_holder(client: Client) -> None:
    stream = await client.take(prefetch=1)
    first, second = await client.enqueue_many(2)
    job = await stream.job()
    assert job["id"] == first
    reply = await client.post(f"/jobs/{first}/success", {"lease": job["lease"] + 1})
    assert reply.status == 409
    # A slot freed by mistake would let the second one follow with this very tick.
    assert await client.count(status="in_flight") == 1
    assert (await client.post(f"/jobs/{first}/success", {"lease": job["lease"]})).status == 204
    assert (await stream.job())["id"] == second


# Refusals


@pytest.mark.settings(max_result=100)
async def test_a_result_over_the_limit_is_413_and_settles_nothing(client: Client) -> None:
    jobs = await held(client, 3, retention=KEPT)
    ids = [job["id"] for job in jobs]
    fits, too_large = "x" * 98, "é" * 50  # with their quotes 100 and 102 bytes
    single = await client.post(f"/jobs/{ids[0]}/success", {"result": too_large})
    assert single.status == 413
    assert "--max-result" in single.error
    items = [{"id": ids[0], "result": fits}, {"id": ids[1], "result": too_large}]
    bulk = await client.post("/jobs/success", {"items": items, "ids": [ids[2]]})
    assert bulk.status == 413
    assert await client.count(status="in_flight") == 3
    assert (await client.post(f"/jobs/{ids[0]}/success", {"result": fits})).status == 204
    assert (await client.job(ids[0]))["result"] == fits


async def test_a_success_with_a_wrong_field_is_400_and_settles_nothing(client: Client) -> None:
    cases: list[Doc] = [
        {"lease": -1},
        {"lease": "1"},
        {"lease": 1.5},
        {"lease": 2**32},
        {"retention": 5},
        {"retention": {"completed_ms": -1}},
        {"retention": {"completed_ms": "1"}},
    ]
    for said in cases:
        (job,) = await held(client)
        single = await client.post(f"/jobs/{job['id']}/success", said)
        bulk = await client.post("/jobs/success", {"items": [{"id": job["id"]} | said]})
        assert (single.status, bulk.status) == (400, 400), said
        assert next(iter(said)) in single.error, said
        assert bulk.error.partition(": ")[2].startswith("items["), said
        assert (await client.job(job["id"]))["status"] == "in_flight", said


async def test_a_bulk_success_that_contradicts_itself_is_400(client: Client) -> None:
    (job,) = await held(client)
    id = job["id"]
    bodies: list[object] = [
        {"items": []},
        {"ids": [], "items": []},
        {"items": None},
        {"items": {}},
        {"items": [id]},
        {"items": [{}]},
        {"items": [{"id": None}]},
        {"items": [{"id": 5}]},
        {"items": [{"id": id}, {"id": id}]},
        {"items": [{"id": id, "result": 1}], "ids": [id]},
    ]
    for body in bodies:
        reply = await client.post("/jobs/success", body)
        assert reply.status == 400, body
        assert reply.error
    assert (await client.job(id))["status"] == "in_flight"


@pytest.mark.parametrize("depth", [128, 129])
async def test_a_result_may_nest_as_deep_as_a_payload(client: Client, depth: int) -> None:
    (job,) = await held(client, retention=KEPT)
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    reply = await client.post(f"/jobs/{job['id']}/success", {"result": value})
    assert reply.status == (204 if depth == 128 else 400)
