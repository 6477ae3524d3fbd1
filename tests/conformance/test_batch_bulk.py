"""Bulk requests whose jobs fold: into hosts, and into one another."""

from .batches import batched, payload_of, put
from .client import Client, new_job


async def test_in_one_bulk_request_jobs_fold_into_earlier_ones(client: Client) -> None:
    jobs = [
        batched([1], "a"),
        new_job(payload="plain"),
        batched([2], "a"),
        batched([3], "b"),
        new_job(payload="u", unique_key="u"),
        batched([4], "a"),
        new_job(payload="v", unique_key="u"),
        batched([5], "b"),
    ]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert reply.status == 201
    found = reply.doc["jobs"]
    folded = [job["folded"] for job in found]
    assert folded == [False, False, True, False, False, True, False, True]
    assert [job["duplicate"] for job in found] == [False] * 6 + [True, False]
    assert found[0]["id"] == found[2]["id"] == found[5]["id"]
    assert found[3]["id"] == found[7]["id"]
    assert await payload_of(client, found[0]) == [1, 2, 4]
    assert await payload_of(client, found[3]) == [3, 5]
    assert await client.count() == 4


async def test_a_bulk_request_that_only_folds_answers_200(client: Client) -> None:
    host = await put(client, [1])
    reply = await client.post("/jobs/bulk", {"jobs": [batched([2]), batched([3])]})
    assert reply.status == 200
    assert [job["id"] for job in reply.doc["jobs"]] == [host["id"]] * 2
    await client.enqueue(unique_key="u")
    mixed = await client.post("/jobs/bulk", {"jobs": [new_job(unique_key="u"), batched([4])]})
    assert mixed.status == 200
    assert await payload_of(client, host) == [1, 2, 3, 4]


async def test_a_bulk_request_seals_and_goes_on(client: Client) -> None:
    host = await put(client, [0], when="($existing | length) < 2")
    jobs = [batched([number], when="($existing | length) < 3") for number in range(1, 8)]
    found = (await client.post("/jobs/bulk", {"jobs": jobs})).doc["jobs"]
    assert [job["folded"] for job in found] == [True, False, True, True, False, True, True]
    payloads = [await payload_of(client, job) for job in await client.jobs()]
    assert payloads == [[0, 1], [2, 3, 4], [5, 6, 7]]
    assert found[0]["id"] == host["id"]
    # The last of them is the host now.
    assert (await put(client, [8]))["folded"] is False


async def test_a_bulk_request_in_which_one_fold_fails_changes_nothing(client: Client) -> None:
    fold = 'if $new == [13] then error("unlucky") else $existing + $new end'
    host = await put(client, [1], fold=fold)
    jobs = [batched([2]), batched([5], "other"), new_job(), batched([13])]
    reply = await client.post("/jobs/bulk", {"jobs": jobs})
    assert (reply.status, reply.error) == (422, "jobs[3]: batch fold: unlucky")
    assert await payload_of(client, host) == [1]
    assert await client.count() == 1
    assert (await put(client, [5], "other"))["folded"] is False
