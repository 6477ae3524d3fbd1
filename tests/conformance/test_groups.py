"""FIFO groups: one job of a group at a time, in order; groups run beside one another."""

import asyncio

import pytest

from .client import Client, Doc, ids, new_job
from .metrics import Scraper
from .streams import TakeStream

LONGEST = "é" * 256


async def in_group(client: Client, count: int, group: str = "g", **fields: object) -> list[str]:
    return await client.enqueue_many(count, group=group, **fields)


async def only(stream: TakeStream, client: Client) -> Doc:
    """The next job of a stream, after which there is none."""
    job = await stream.job()
    await client.heartbeat(stream)
    return job


async def test_a_job_shows_its_group_everywhere(client: Client) -> None:
    job = await client.enqueue(group="a/ü:1")
    assert job["group"] == "a/ü:1"
    stream = await client.take()
    assert (await stream.job())["group"] == "a/ü:1"
    assert (await client.job(job["id"]))["group"] == "a/ü:1"
    assert [found["group"] for found in await client.jobs()] == ["a/ü:1"]
    assert (await client.fail(job["id"]))["group"] == "a/ü:1"


async def test_a_job_without_a_group_shows_none(client: Client) -> None:
    for fields in ({}, {"group": None}):
        assert "group" not in await client.enqueue(**fields)


async def test_one_job_of_a_group_is_delivered_at_a_time_in_order(client: Client) -> None:
    issued = await in_group(client, 3)
    stream = await client.take(prefetch=10)
    for job_id in issued:
        assert (await only(stream, client))["id"] == job_id
        await client.succeed(job_id)
    assert await client.count() == 0


async def test_other_groups_and_queues_and_jobs_of_none_go_on(client: Client) -> None:
    first, _ = await in_group(client, 2, "g")
    other, _ = await in_group(client, 2, "h")
    alike, _ = await in_group(client, 2, "g", queue="other")
    free = await client.enqueue_many(2)
    stream = await client.take(prefetch=10)
    assert ids(await stream.jobs(5)) == [first, other, alike, *free]
    await client.heartbeat(stream)


async def test_a_group_is_one_over_all_streams(client: Client) -> None:
    issued = await in_group(client, 4)
    streams = [await client.take(prefetch=10) for _ in range(2)]
    waiting = {asyncio.create_task(stream.job()): stream for stream in streams}
    for job_id in issued:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (task,) = done
        assert task.result()["id"] == job_id
        stream = waiting.pop(task)
        waiting[asyncio.create_task(stream.job())] = stream
        assert await client.count(status="in_flight") == 1
        await client.succeed(job_id)
    for task in waiting:
        task.cancel()


async def test_waiting_jobs_of_a_group_are_ready_for_every_reader(client: Client) -> None:
    issued = await in_group(client, 3)
    assert ids(await client.jobs(status="ready")) == issued
    assert ids(await client.jobs(status="ready", queue="default")) == issued
    assert await client.count(status="ready") == 3
    await client.take()
    await client.until_count(2, status="ready")


@pytest.mark.parametrize("end", ["success", "bulk", "kill", "delete", "cancel", "sweep", "move"])
async def test_the_next_comes_when_the_head_ends(client: Client, end: str) -> None:
    first, second = await in_group(client, 2)
    stream = await client.take(prefetch=10, queue="default")
    if end == "move":
        # One in flight stays where it is; one that waits may go.
        await (await client.take(queue="nothing")).close()
        assert (await only(stream, client))["id"] == first
        await client.fail(first, retry_at=client.site.now + 60_000)
        await client.change(first, queue="elsewhere")
        assert (await stream.job())["id"] == second
        return
    assert (await only(stream, client))["id"] == first
    match end:
        case "success":
            assert (await client.post(f"/jobs/{first}/success", {})).status == 204
        case "bulk":
            await client.succeed(first)
        case "kill":
            await client.fail(first, kill=True)
        case "delete":
            assert (await client.delete(f"/jobs/{first}")).status == 204
        case "cancel":
            assert (await client.post(f"/jobs/{first}/cancel", {"force": True})).status == 200
        case "sweep":
            assert (await client.delete("/jobs", id=first)).doc == {"deleted": 1}
    assert (await stream.job())["id"] == second


async def test_the_next_is_delivered_by_the_commit_that_settles_the_head(
    client: Client, scrape: Scraper
) -> None:
    first, second = await in_group(client, 2)
    stream = await client.take(prefetch=10)
    assert (await only(stream, client))["id"] == first
    before = (await scrape())["zq_ticks_total"]
    await client.succeed(first)
    assert (await stream.job())["id"] == second
    assert (await scrape())["zq_ticks_total"] == before + 1


async def test_a_failing_head_keeps_its_group_shut_while_others_go_on(client: Client) -> None:
    first, second = await in_group(client, 2)
    stream = await client.take(prefetch=10)
    assert (await only(stream, client))["id"] == first
    await client.fail(first, retry_at=client.site.now + 10_000)
    await client.heartbeat(stream)
    (other,) = await in_group(client, 1, "h")
    assert (await only(stream, client))["id"] == other
    client.site.clock.advance(10_000)
    again = await stream.job()
    assert (again["id"], again["attempts"]) == (first, 1)
    await client.succeed(first)
    assert (await stream.job())["id"] == second


async def test_a_head_whose_stream_ends_comes_again_before_the_others(client: Client) -> None:
    first, second = await in_group(client, 2)
    broken = await client.take(prefetch=10)
    assert (await only(broken, client))["id"] == first
    await broken.close()
    stream = await client.take(prefetch=10)
    assert (await only(stream, client))["id"] == first
    await client.succeed(first)
    assert (await stream.job())["id"] == second


async def test_a_group_goes_on_after_a_restart(client: Client) -> None:
    issued = await in_group(client, 2)
    stream = await client.take(prefetch=10)
    assert (await only(stream, client))["id"] == issued[0]
    await client.site.restart()
    async with Client(client.site, client.wire) as other:
        stream = await other.take(prefetch=10)
        for job_id in issued:
            assert (await only(stream, other))["id"] == job_id
            await other.succeed(job_id)


async def test_a_job_of_a_group_cannot_change_its_queue_in_flight(client: Client) -> None:
    job = await client.in_flight(group="g")
    reply = await client.patch(f"/jobs/{job['id']}", {"queue": "other"})
    assert reply.status == 422
    assert "belongs to group 'g'" in reply.error
    assert (await client.patch("/jobs", {"queue": "other"})).doc == {"patched": 0}
    assert (await client.job(job["id"]))["queue"] == "default"
    await client.change(job["id"], queue="default", priority=7)


NO_NAMES = ["", "a,b", "a*", "{x}", "a\0", "x" * 513, LONGEST + "x", 5, []]


async def test_a_group_is_a_name_of_at_most_512_bytes(client: Client) -> None:
    for group in NO_NAMES:
        for path, body in (
            ("/jobs", new_job(group=group)),
            ("/jobs/bulk", {"jobs": [new_job(), new_job(group=group)]}),
        ):
            reply = await client.post(path, body)
            assert reply.status == 400, reply.doc
            assert "group" in reply.error
        assert await client.count() == 0


async def test_a_group_may_have_the_longest_name(client: Client) -> None:
    assert (await client.enqueue(group=LONGEST))["group"] == LONGEST


def listed(reply: Doc) -> list[tuple[str, str, str, int]]:
    """The groups of an answer: name, id and status of the open job, and how many wait."""
    return [
        (each["group"], each["open"]["id"], each["open"]["status"], each["behind"])
        for each in reply["groups"]
    ]


async def test_a_queue_lists_its_groups_with_what_each_waits_for(client: Client) -> None:
    assert (await client.get("/queues/default/groups")).doc == {"groups": []}
    stream = await client.take(prefetch=1)
    (ended,) = await in_group(client, 1, "done")
    await stream.job()
    await client.succeed(ended)
    failed, *_ = await in_group(client, 3, "b")
    await stream.job()
    await client.fail(failed)
    held, *_ = await in_group(client, 2, "a")
    await stream.job()
    (ready,) = await in_group(client, 1, "é")
    await in_group(client, 1, "g", queue="other")
    await client.enqueue_many(1)

    found = (await client.get("/queues/default/groups")).doc
    assert listed(found) == [
        ("a", held, "in_flight", 1),
        ("b", failed, "scheduled", 2),
        ("é", ready, "ready", 0),
    ]
    flying, backing_off, _ = (each["open"] for each in found["groups"])
    job = await client.job(failed)
    assert backing_off == {name: job[name] for name in backing_off}
    assert flying["dequeued_at"] == (await client.job(held))["dequeued_at"]


async def test_groups_are_listed_page_by_page_and_counted_up_to_a_thousand(client: Client) -> None:
    await in_group(client, 1_002, "ab")
    for name in "cde":
        await in_group(client, 1, name)

    first = listed((await client.get("/queues/default/groups", limit=2)).doc)
    assert [(name, behind) for name, _, _, behind in first] == [("ab", 1_000), ("c", 0)]
    rest = listed((await client.get("/queues/default/groups", after="c")).doc)
    assert [name for name, *_ in rest] == ["d", "e"]
    assert (await client.get("/queues/default/groups", after="e")).doc == {"groups": []}
    for limit in (0, 501):
        assert (await client.get("/queues/default/groups", limit=limit)).status == 400
