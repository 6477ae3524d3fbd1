"""Streams whose leases have deadlines; stalls, notices, and the list of workers."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from .claims import claim, claim_one, set_queue
from .client import Client, ids
from .streams import CUTTERS, PATIENCE_S, StreamEnded, TakeStream, pause
from .test_waiting import until_waiting


async def take(client: Client, *, worker: str | None = None, **params: Any) -> TakeStream:
    """A take stream with any parameters, of a worker that may have a name."""
    headers = {} if worker is None else {"worker-id": worker}
    return await client.take(headers=headers, more=params)


# Leases with deadlines


async def test_a_lease_that_expires_on_a_stream_ends_the_stream(client: Client) -> None:
    issued = await client.enqueue_many(3)
    hung = await take(client, prefetch=2, lease_ms=10_000)
    first, second = await hung.jobs(2)
    until = client.site.now + 10_000
    assert (first["lease_until"], first["deliveries"], first["lease"]) == (until, 1, 1)
    client.site.clock.advance(10_000)
    assert await client.count(status="in_flight") == 2
    client.site.clock.advance(1)
    await hung.ended()
    # All that it held has gone back, and it gets nothing more.
    assert ids(await claim(client, max=5)) == issued
    assert {first["id"], second["id"]} == set(issued[:2])


async def test_a_stream_that_extends_its_leases_goes_on(client: Client) -> None:
    job = await client.enqueue()
    stream = await take(client, lease_ms=4_000)
    await stream.job()
    for _ in range(3):
        client.site.clock.advance(3_000)
        reply = await client.post(f"/jobs/{job['id']}/extend", {"lease_ms": 4_000, "lease": 1})
        assert reply.status == 200
    await client.succeed(job["id"])
    client.site.clock.advance(10_000)
    other = await client.enqueue()
    assert (await stream.job())["id"] == other["id"]


async def test_extending_gives_a_plain_streams_lease_a_deadline(client: Client) -> None:
    job = await client.enqueue()
    stream = await client.take()
    assert "lease_until" not in await stream.job()
    await client.post(f"/jobs/{job['id']}/extend", {"lease_ms": 5_000})
    client.site.clock.advance(5_001)
    await stream.ended()
    await client.until(job["id"], status="ready")


@pytest.mark.parametrize("by", ["job", "queue"])
async def test_a_job_or_its_queue_may_set_the_time_of_a_plain_streams_lease(
    client: Client, by: str
) -> None:
    if by == "queue":
        await set_queue(client, lease_ms=7_000)
    await client.enqueue(lease_ms=7_000 if by == "job" else None)
    plain = await client.enqueue(queue="other")
    stream = await client.take(prefetch=2)
    jobs = await stream.jobs(2)
    assert jobs[0]["lease_until"] == client.site.now + 7_000
    assert (jobs[1]["id"], "lease_until" in jobs[1]) == (plain["id"], False)


async def test_a_released_job_frees_its_slot(client: Client) -> None:
    issued = await client.enqueue_many(2)
    stream = await client.take()
    assert (await stream.job())["id"] == issued[0]
    await client.post(f"/jobs/{issued[0]}/release", {"delay_ms": 1_000})
    assert (await stream.job())["id"] == issued[1]


BAD_QUERIES = [
    *("lease_ms=0", "lease_ms=x", "lease_ms=4294967296", "concurrency=0", "concurrency=-1"),
    *("control=2", "control=yes", "worker=a&worker=b", "lease=1"),
]


async def test_what_a_stream_cannot_ask_for_is_400(client: Client) -> None:
    for query in BAD_QUERIES:
        reply = await client.send("GET", f"/jobs/take?{query}", headers={"accept": "*/*"})
        assert reply.status == 400
        assert query.partition("=")[0] in reply.error


# Stalls


async def stalls(client: Client, max: int = 10) -> dict[str, int]:
    """How often each ready job has stalled: the job is taken for that, and given back."""
    jobs = await claim(client, max=max)
    for job in jobs:
        await client.send("POST", f"/jobs/{job['id']}/release")
    return {job["id"]: job.get("stalls", 0) for job in jobs}


@pytest.mark.parametrize(("concurrency", "expected"), [(None, 1), (1, 1), (2, 2), (9, 4)])
async def test_a_stream_that_ends_stalls_what_its_worker_ran_and_no_more(
    client: Client, concurrency: int | None, expected: int
) -> None:
    issued = await client.enqueue_many(5)
    params: dict[str, Any] = {} if concurrency is None else {"concurrency": concurrency}
    stream = await take(client, prefetch=4, **params)
    await stream.jobs(4)
    await stream.close()
    await client.until_count(5, status="ready")
    counted = await stalls(client)
    assert counted == {id: int(index < expected) for index, id in enumerate(issued)}


async def test_what_a_worker_has_finished_is_not_counted(client: Client) -> None:
    issued = await client.enqueue_many(3)
    stream = await take(client, prefetch=3)
    await stream.jobs(3)
    await client.succeed(issued[0])
    await stream.close()
    await client.until_count(2, status="ready")
    assert await stalls(client) == {issued[1]: 1, issued[2]: 0}


async def test_a_stream_that_ends_after_a_drain_stalls_nothing(client: Client) -> None:
    issued = await client.enqueue_many(2)
    stream = await take(client, prefetch=2, worker="w")
    await stream.jobs(2)
    assert (await client.send("POST", "/workers/w/drain")).status == 200
    await stream.close()
    await client.until_count(2, status="ready")
    assert await stalls(client) == dict.fromkeys(issued, 0)


async def test_a_stopping_server_stalls_nothing(client: Client) -> None:
    job = await client.in_flight()
    await client.site.restart()
    assert await stalls(client) == {job["id"]: 0}


async def test_a_hung_stream_stalls_what_expired_and_what_else_it_ran(client: Client) -> None:
    issued = await client.enqueue_many(4)
    stream = await take(client, prefetch=4, concurrency=2)
    await stream.jobs(4)
    await client.post(f"/jobs/{issued[2]}/extend", {"lease_ms": 10})
    client.site.clock.advance(11)
    await stream.ended()
    await client.until_count(4, status="ready")
    assert await stalls(client) == dict(zip(issued, [1, 0, 1, 0], strict=True))


@pytest.mark.parametrize("how", ["lease", "stream"])
async def test_a_job_dies_that_stalls_more_often_than_its_queue_permits(
    client: Client, how: str
) -> None:
    await set_queue(client, stall_limit=1)
    job = await client.enqueue()
    waiting = asyncio.create_task(client.get(f"/jobs/{job['id']}/result", wait_ms=30_000))
    await until_waiting(client, 1)
    for number in range(2):
        assert (await client.job(job["id"]))["status"] == "ready", number
        if how == "lease":
            await claim_one(client, lease_ms=10)
            client.site.clock.advance(11)
        else:
            stream = await client.take()
            await stream.job()
            await stream.close()
        await client.until(job["id"], status="dead" if number else "ready")
    dead = await client.job(job["id"])
    assert (dead["reason"], dead["attempts"]) == ("stalled", 1)
    assert dead["purge_at"] > client.site.now
    reply = await waiting
    told = {"status": "dead", "reason": "stalled", "error": "its worker died 2 times"}
    assert (reply.status, reply.doc) == (200, told)
    assert (await client.get(f"/jobs/{job['id']}/result")).doc == reply.doc
    (error,) = (await client.get(f"/jobs/{job['id']}/errors")).doc["errors"]
    assert (error["message"], error["attempt"]) == ("its worker died 2 times", 1)
    assert error["error_type"] == "WorkerDied"
    assert await client.count() == 1


async def test_a_job_that_is_not_kept_dies_of_stalls_and_is_gone(client: Client) -> None:
    await set_queue(client, stall_limit=0)
    job = await client.enqueue(retention={"dead_ms": 0})
    waiting = asyncio.create_task(client.get(f"/jobs/{job['id']}/result", wait_ms=30_000))
    await until_waiting(client, 1)
    await claim_one(client, lease_ms=10)
    client.site.clock.advance(11)
    reply = await waiting
    told = {"status": "dead", "reason": "stalled", "error": "its worker died"}
    assert (reply.status, reply.doc) == (200, told)
    assert not await client.exists(job["id"])


@pytest.mark.parametrize("how", ["lease", "stream"])
async def test_a_worker_sets_a_limit_where_the_queue_has_none(client: Client, how: str) -> None:
    jobs = [await client.enqueue(queue=queue) for queue in ("says-nothing", "says-more")]
    await client.patch("/queues/says-more/settings", {"stall_limit": 9})
    for number in range(2):
        for job in jobs:
            await client.until(job["id"], status="ready")
        more = {"stall_limit": 1, "concurrency": 2, "lease_ms": 10_000}
        stream = await client.take(prefetch=2, more=more)
        for _ in jobs:
            await stream.job()
        if how == "lease":
            client.site.clock.advance(10_001)
        await stream.close()
        await client.until(jobs[0]["id"], status="dead" if number else "ready")
        await client.until(jobs[1]["id"], status="ready")
    assert (await client.job(jobs[0]["id"]))["stalls"] == 2
    reply = await client.get("/jobs/take", stall_limit="-1")
    assert reply.status == 400


async def test_without_a_limit_a_job_may_stall_for_ever(client: Client) -> None:
    job = await client.enqueue()
    for number in range(30):
        taken = await claim_one(client, lease_ms=1)
        assert taken.get("stalls", 0) == number
        client.site.clock.advance(2)
        await client.until(job["id"], status="ready")


# Notices


@pytest.mark.parametrize("framing", CUTTERS)
@pytest.mark.parametrize("how", ["cancel", "cancel sweep", "delete", "delete sweep", "reset"])
async def test_a_worker_hears_that_its_job_was_taken_from_it(
    client: Client, framing: str, how: str
) -> None:
    issued = await client.enqueue_many(2)
    stream = await client.take(prefetch=2, accept=framing, more={"control": 1})
    await stream.jobs(2)
    id = issued[0]
    match how:
        case "cancel":
            await client.post(f"/jobs/{id}/cancel", {"force": True})
        case "cancel sweep":
            await client.post(f"/jobs/cancel?id={id}", {"force": True})
        case "delete":
            await client.delete(f"/jobs/{id}")
        case "delete sweep":
            await client.delete("/jobs", id=id)
        case "reset":
            await client.send("POST", "/reset")
    assert await stream.job() == {"control": "cancel", "id": id, "lease": 1}
    if how == "reset":
        assert await stream.job() == {"control": "cancel", "id": issued[1], "lease": 1}
    later = await client.enqueue()
    assert (await stream.job())["id"] == later["id"]


async def test_a_worker_hears_of_a_lease_that_is_lost_before_its_stream_ends(
    client: Client,
) -> None:
    first, second = await client.enqueue_many(2)
    stream = await take(client, prefetch=2, lease_ms=5_000, control=1)
    await stream.jobs(2)
    await client.post(f"/jobs/{second}/extend", {"lease_ms": 60_000})
    client.site.clock.advance(5_001)
    assert await stream.job() == {"control": "lease_lost", "id": first, "lease": 1}
    await stream.ended()


async def test_a_drained_worker_is_told_gets_nothing_more_and_may_finish(client: Client) -> None:
    issued = await client.enqueue_many(2)
    stream = await take(client, worker="w", control=1)
    assert (await stream.job())["id"] == issued[0]
    reply = await client.send("POST", "/workers/w/drain")
    assert reply.status == 200
    assert [worker["draining"] for worker in reply.doc["workers"]] == [True]
    assert await stream.job() == {"control": "drain"}
    await client.succeed(issued[0])
    # A second drain says nothing new, and the stream stays open.
    assert (await client.send("POST", "/workers/w/drain")).status == 200
    await client.heartbeat(stream)
    assert (await client.job(issued[1]))["status"] == "ready"
    (worker,) = (await client.get("/workers")).doc["workers"]
    assert (worker["id"], worker["draining"], worker["held"]) == ("w", True, [])


@pytest.mark.parametrize("control", [None, 0])
async def test_who_has_not_asked_hears_of_jobs_only(client: Client, control: int | None) -> None:
    issued = await client.enqueue_many(3)
    params: dict[str, Any] = {} if control is None else {"control": control}
    stream = await take(client, prefetch=3, lease_ms=60_000, worker="w", **params)
    await stream.jobs(3)
    await client.post(f"/jobs/{issued[0]}/cancel", {"force": True})
    await client.delete(f"/jobs/{issued[1]}")
    await client.send("POST", "/workers/w/drain")
    await client.heartbeat(stream)
    client.site.clock.advance(60_001)
    try:
        while True:
            assert await stream.frame() is None
    except StreamEnded:
        pass


async def test_settling_a_job_is_no_news_to_its_worker(client: Client) -> None:
    issued = await client.enqueue_many(4)
    stream = await take(client, prefetch=4, control=1)
    await stream.jobs(4)
    await client.succeed(issued[0])
    await client.fail(issued[1], kill=True)
    await client.fail(issued[2])
    await client.post(f"/jobs/{issued[3]}/release", {"delay_ms": 60_000})
    await client.heartbeat(stream)


# Who is at work


async def test_a_dropped_worker_loses_its_stream_and_its_jobs_no_attempt(client: Client) -> None:
    (issued,) = await client.enqueue_many(1, queue="a")
    stream = await client.take(queue="a", more={"worker": "w"})
    await stream.job()
    reply = await client.send("DELETE", "/workers/w")
    assert (reply.status, [w["held"] for w in reply.doc["workers"]]) == (200, [[issued]])
    await stream.ended()
    other = await client.take(queue="a")
    job = await other.job()
    assert (job["id"], job["attempts"]) == (issued, 0)
    assert (await client.send("DELETE", "/workers/w")).status == 404


async def test_the_workers_are_listed_with_what_they_do(client: Client) -> None:
    assert (await client.get("/workers")).doc == {"workers": []}
    since = client.site.now
    issued = await client.enqueue_many(3, queue="a")
    named = await client.take(
        prefetch=2,
        queue="b,a",
        more={"worker": "left/1", "concurrency": 2},
        headers={"user-agent": "scanner/1.2"},
    )
    await named.jobs(2)
    client.site.clock.advance(5)
    other = await client.take(prefetch=0, more={"worker": "right"})
    await other.job()
    nameless = await client.take(queue="c")
    first, second, third = (await client.get("/workers")).doc["workers"]
    assert first == {
        "id": "left/1",
        "queues": ["a", "b"],
        "prefetch": 2,
        "concurrency": 2,
        "busy": 2,
        "held": issued[:2],
        "since": since,
        "seen_at": since,
        "silent": False,
        "draining": False,
        "address": "127.0.0.1",
        "client": "scanner/1.2",
        "unsent_bytes": 0,
        "delivered": 2,
        "failed": 0,
    }
    assert third["client"] == ""
    assert (second["id"], second["queues"], second["held"]) == ("right", [], issued[2:])
    assert second["since"] == since + 5
    assert third["id"].startswith("#")
    reply = await client.send("POST", f"/workers/{quote(third['id'], safe='')}/drain")
    assert (reply.status, [w["id"] for w in reply.doc["workers"]]) == (200, [third["id"]])
    reply = await client.send("POST", f"/workers/{quote('left/1', safe='')}/drain")
    assert (reply.status, [w["id"] for w in reply.doc["workers"]]) == (200, ["left/1"])
    await nameless.close()
    async with asyncio.timeout(PATIENCE_S):
        while len((await client.get("/workers")).doc["workers"]) != 2:
            await pause()


async def test_a_drain_reaches_every_stream_of_the_worker_and_no_other(client: Client) -> None:
    twins = [await take(client, worker="w", prefetch=5) for _ in range(2)]
    other = await take(client, worker="v")
    reply = await client.send("POST", "/workers/w/drain")
    assert len(reply.doc["workers"]) == 2
    job = await client.enqueue()
    assert (await other.job())["id"] == job["id"]
    for stream in twins:
        await client.heartbeat(stream)


async def test_nobody_of_that_name_is_404(client: Client) -> None:
    reply = await client.send("POST", "/workers/nobody/drain")
    assert (reply.status, reply.headers["zq-error"]) == (404, "worker_not_found")
    assert (await client.get("/workers", status="idle")).status == 400


async def test_a_worker_id_that_is_no_text_is_listed_all_the_same(client: Client) -> None:
    await client.take(headers={"worker-id": "x" * 10_000})
    (worker,) = (await client.get("/workers")).doc["workers"]
    assert worker["id"] == "x" * 256
