"""Batches: which jobs fold, what becomes of their payloads, and who is told."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from .batches import APPEND, batched, payload_of, put
from .client import Client, Doc, Reply, to_msgpack, without_body
from .streams import PATIENCE_S, pause


async def until_folded(client: Client, job: Doc, payload: Any) -> None:
    """Wait until another request has been folded into a job."""
    async with asyncio.timeout(PATIENCE_S):
        while await payload_of(client, job) != payload:
            await pause()


async def test_a_job_folds_into_the_one_that_waits(client: Client) -> None:
    host = await put(client, [1], queue="a", type="s", priority=7, retry_limit=3)
    assert (host["duplicate"], host["folded"]) == (False, False)
    folded = await put(client, [2], queue="b", type="t", priority=1)
    assert folded == host | {"folded": True}
    stored = await client.job(host["id"])
    assert stored["payload"] == [1, 2]
    assert without_body(stored) | {"duplicate": False, "folded": False} == host
    assert stored["batch"] == {"key": "b", **APPEND}
    assert await client.count() == 1


async def test_batches_with_other_keys_are_others(client: Client) -> None:
    keys = ("b", "B", " b", "é🐝", "a,b*?", "k" * 2_048, "b\0", "b\0c")
    hosts = {key: await put(client, [key], key) for key in keys}
    assert len({host["id"] for host in hosts.values()}) == len(keys)
    for key, host in hosts.items():
        assert (await put(client, ["more"], key))["id"] == host["id"]
        assert await payload_of(client, host) == [key, "more"]


async def test_a_worker_gets_what_was_folded(client: Client) -> None:
    host = await put(client, [1])
    for number in range(2, 6):
        await put(client, [number])
    stream = await client.take()
    taken = await stream.job()
    assert (taken["id"], taken["payload"]) == (host["id"], [1, 2, 3, 4, 5])
    assert taken["batch"] == host["batch"]


NUMBERS = [2**53 + 1, -(2**53) - 1, 2**64 - 1, -(2**63), 0, -1, 0.1, 1e300, 5e-324]


async def test_numbers_and_nested_data_pass_through_unchanged(client: Client) -> None:
    nested = {"a": [{"b": NUMBERS}, None, True, 'é\u0000"\\😀\u2028'], "": {}}
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    host = await put(client, [nested])
    for part in (NUMBERS, deep):
        await put(client, [part])
    assert await payload_of(client, host) == [nested, NUMBERS, deep]
    stream = await client.take()
    assert (await stream.job())["payload"] == [nested, NUMBERS, deep]


async def test_many_at_once_are_all_folded_once(client: Client) -> None:
    count = 200
    rule = {"when": "($existing | length) < 30"}
    replies = await asyncio.gather(
        *(client.post("/jobs", batched([n], f"b{n % 3}", **rule)) for n in range(count))
    )
    assert {reply.status for reply in replies} == {200, 201}
    jobs = await client.jobs(limit=200)
    assert sorted(n for job in jobs for n in job["payload"]) == list(range(count))
    where = {n: job["id"] for job in jobs for n in job["payload"]}
    assert [reply.doc["id"] for reply in replies] == [where[n] for n in range(count)]
    assert Counter(reply.status for reply in replies)[201] == len(jobs)
    assert all(len(job["payload"]) <= 30 for job in jobs)


async def test_a_batch_is_folded_into_while_its_hosts_are_taken(client: Client) -> None:
    count = 150
    stream = await client.take(prefetch=1_000)

    async def produce(n: int) -> Reply:
        return await client.post("/jobs", batched([n]))

    replies = await asyncio.gather(*(produce(n) for n in range(count)))
    stored = sum(reply.status == 201 for reply in replies)
    delivered = [job["payload"] for job in [await stream.job() for _ in range(stored)]]
    assert sorted(n for payload in delivered for n in payload) == list(range(count))


async def test_wait_on_a_fold_waits_for_the_host(client: Client) -> None:
    host = await put(client, [0])
    folded = asyncio.create_task(client.post("/jobs?wait_ms=30000", batched([1])))
    await until_folded(client, host, [0, 1])
    stream = await client.take()
    assert (await stream.job())["id"] == host["id"]
    assert (await client.post(f"/jobs/{host['id']}/success", {"result": 5})).status == 204
    answer = (await folded).doc
    assert answer["result"] == 5
    assert (answer["job"]["id"], answer["job"]["folded"]) == (host["id"], True)


async def test_a_copy_by_name_is_not_folded_again(client: Client) -> None:
    host = await put(client, [1])
    named = batched([2], dedupe={"id": "n"})
    first = await client.post("/jobs", named)
    assert (first.status, first.doc["id"], first.doc["folded"]) == (200, host["id"], True)
    again = await client.post("/jobs", named)
    assert (again.status, again.doc["id"]) == (200, host["id"])
    assert (again.doc["duplicate"], again.doc["folded"]) == (True, False)
    bulk = [batched([3], dedupe={"id": "m"}), batched([4]), batched([3], dedupe={"id": "m"}), named]
    found = (await client.post("/jobs/bulk", {"jobs": bulk})).doc["jobs"]
    assert [job["folded"] for job in found] == [True, True, False, False]
    assert [job["duplicate"] for job in found] == [False, False, True, True]
    assert await payload_of(client, host) == [1, 2, 3, 4]
    many = [client.post("/jobs", batched([5], dedupe={"id": "same"})) for _ in range(10)]
    replies = await asyncio.gather(*many)
    assert sum(reply.doc["folded"] for reply in replies) == 1
    assert await payload_of(client, host) == [1, 2, 3, 4, 5]
    # Its window is over.
    client.site.clock.advance(300_000)
    assert (await client.post("/jobs", named)).doc["folded"] is True


@pytest.mark.settings(max_inbox_jobs=1)
async def test_an_inbox_of_one_takes_one_fold_after_the_other(client: Client) -> None:
    host = await put(client, [1])
    await put(client, [2])
    replies = await asyncio.gather(*(client.post("/jobs", batched([n])) for n in range(3, 13)))
    assert {reply.status for reply in replies} <= {200, 503}
    kept = [n for n, reply in zip(range(3, 13), replies, strict=True) if reply.status == 200]
    assert kept
    assert sorted(await payload_of(client, host)) == [1, 2, *kept]
    # Nothing that waited is counted any longer.
    await put(client, [13])


async def test_folds_are_counted_and_tell_of_no_new_job(client: Client) -> None:
    events = await client.listen()
    host = await put(client, [1])
    await put(client, [2])
    other = await client.enqueue()
    named = [await events.event() for _ in range(2)]
    assert [event["id"] for event in named] == [host["id"], other["id"]]


async def test_the_numbers_may_come_in_one_format_and_leave_in_the_other(client: Client) -> None:
    body = to_msgpack(batched([2**63, -5]))
    headers = {"content-type": "application/msgpack"}
    first = await client.send("POST", "/jobs", body, headers)
    assert first.status == 201
    await put(client, [2**63 + 1])
    assert await payload_of(client, first.doc) == [2**63, -5, 2**63 + 1]
