"""GET /history: a record of each ended attempt, in order, as long as it is kept."""

import asyncio
import json
from typing import Any

import pytest

from zq.features.history.engine import HistoryReaders

from .client import JSON, Client, Doc, Reply
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S, pause

DAY_MS = 86_400_000
LONG_MS = 30_000
LINES = {"accept": "application/x-ndjson"}

pytestmark = pytest.mark.settings(history=7 * DAY_MS, device="lab-1")


async def history(client: Client, **params: Any) -> Doc:
    reply = await client.get("/history", **params)
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


async def finish(client: Client, count: int, **fields: Any) -> list[str]:
    """Let so many jobs come and go; their ids."""
    ids = await client.enqueue_many(count, **fields)
    stream = await client.take(prefetch=count, headers={"worker-id": "ann"})
    await stream.jobs(count)
    await client.succeed(*ids)
    await stream.close()
    # Its timers would look at a connection that is gone when the clock moves.
    async with asyncio.timeout(PATIENCE_S):
        while len(client.site.server.engine.streams):
            await pause()
    return ids


async def until_waiting(client: Client) -> None:
    """Let the server get to the point where somebody waits for more history."""
    readers = client.site.server.engine[HistoryReaders]
    async with asyncio.timeout(PATIENCE_S):
        while not readers.waiting:
            await pause()


async def test_a_completed_job_leaves_one_record(client: Client) -> None:
    began = client.site.now
    job = await client.enqueue(queue="mail", type="welcome", payload={"n": 1}, priority=5)
    client.site.clock.advance(10)
    stream = await client.take(headers={"worker-id": "ann"})
    await stream.job()
    client.site.clock.advance(20)
    await client.succeed(job["id"])
    found = await history(client)
    assert found["records"] == [
        {
            "seq": 1,
            "epoch": found["epoch"],
            "device": "lab-1",
            "job_id": job["id"],
            "queue": "mail",
            "type": "welcome",
            "attempt": 1,
            "outcome": "completed",
            "enqueued_at": began,
            "ready_at": began,
            "dequeued_at": began + 10,
            "finished_at": began + 30,
            "error_type": None,
            "error_message": None,
            "worker": "ann",
            "payload_bytes": 7,
            "priority": 5,
        }
    ]
    assert (found["min_seq"], found["max_seq"], found["recording"]) == (1, 1, True)
    assert len(bytes.fromhex(found["epoch"])) == 16


async def test_each_attempt_has_its_own_record(client: Client) -> None:
    job = await client.in_flight()
    await client.fail(job["id"], message="no such host", error_type="DNS", retry_at=0)
    await client.until(job["id"], status="in_flight")
    await client.fail(job["id"], message="again", kill=True)
    first, second = (await history(client))["records"]
    assert (first["attempt"], first["outcome"]) == (1, "failed")
    assert (first["error_type"], first["error_message"]) == ("DNS", "no such host")
    assert (second["attempt"], second["outcome"]) == (2, "dead")
    assert (second["error_type"], second["error_message"]) == (None, "again")


@pytest.mark.parametrize("where", ["scheduled", "ready", "in_flight"])
async def test_a_cancelled_job_leaves_a_record(client: Client, where: str) -> None:
    job_id = await client.make(where)
    assert (await client.post(f"/jobs/{job_id}/cancel", {"force": True})).status == 200
    (record,) = (await history(client, wait_ms=LONG_MS))["records"]
    assert (record["job_id"], record["outcome"]) == (job_id, "cancelled")
    assert (record["dequeued_at"] is not None) is (where == "in_flight")


async def test_jobs_that_are_cancelled_together_leave_a_record_each(client: Client) -> None:
    ids = await client.enqueue_many(3)
    assert (await client.send("POST", "/jobs/cancel")).doc == {"cancelled": 3}
    found = await history(client)
    assert [record["job_id"] for record in found["records"]] == ids


async def test_a_worker_that_goes_away_leaves_a_record_of_what_it_had_begun(
    client: Client,
) -> None:
    begun, waiting = await client.enqueue_many(2)
    stream = await client.take(prefetch=2, headers={"worker-id": "ann"})
    await stream.jobs(2)
    await stream.close()
    await client.until(waiting, status="ready")
    (record,) = (await history(client, wait_ms=LONG_MS))["records"]
    assert (record["job_id"], record["outcome"], record["attempt"]) == (begun, "stalled", 1)
    assert (record["worker"], record["error_message"]) == ("ann", None)


async def test_a_job_that_nobody_took_in_time_leaves_a_record(client: Client) -> None:
    job = await client.enqueue(ttl_ms=1_000)
    client.site.clock.advance(1_000)
    await client.until(job["id"], status="expired")
    (record,) = (await history(client, wait_ms=LONG_MS))["records"]
    assert (record["job_id"], record["outcome"]) == (job["id"], "expired")
    assert (record["dequeued_at"], record["worker"]) == (None, None)


async def test_a_job_that_is_deleted_leaves_none(client: Client) -> None:
    job = await client.in_flight()
    await client.delete(f"/jobs/{job['id']}")
    assert (await history(client))["records"] == []


async def test_pages_follow_each_other_by_after(client: Client) -> None:
    ids = await finish(client, 7)
    seen: list[Doc] = []
    while page := (await history(client, limit=3, after=len(seen)))["records"]:
        assert len(page) <= 3
        seen += page
    assert [record["seq"] for record in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert {record["job_id"] for record in seen} == set(ids)
    middle = (await history(client, after=2, until=5))["records"]
    assert [record["seq"] for record in middle] == [3, 4, 5]


async def test_ndjson_has_a_record_a_line_and_the_rest_in_headers(client: Client) -> None:
    await finish(client, 3)
    found = await history(client)
    reply = await client.send("GET", "/history?after=1", headers=LINES)
    assert (reply.status, reply.media_type) == (200, "application/x-ndjson")
    assert [json.loads(line) for line in reply.body.splitlines()] == found["records"][1:]
    told = {name: reply.headers[f"zq-{name}"] for name in ("epoch", "min-seq", "max-seq")}
    assert told == {"epoch": found["epoch"], "min-seq": "1", "max-seq": "3"}
    assert reply.headers["zq-recording"] == "yes"
    assert (await client.get("/history")).headers["zq-max-seq"] == "3"


async def test_a_range_is_the_same_after_a_crash_and_goes_on(client: Client) -> None:
    await finish(client, 5)
    before = await client.send("GET", "/history?until=5", headers=LINES)
    await client.site.crash()
    after = await client.send("GET", "/history?until=5", headers=LINES)
    assert before.body == after.body
    assert before.headers["zq-epoch"] == after.headers["zq-epoch"]
    await finish(client, 1)
    assert [r["seq"] for r in (await history(client, after=4))["records"]] == [5, 6]


async def test_records_past_their_age_get_410_with_the_oldest_that_is_left(client: Client) -> None:
    await finish(client, 2)
    client.site.clock.advance(DAY_MS)
    await finish(client, 1)
    client.site.clock.advance(6 * DAY_MS)
    async with asyncio.timeout(PATIENCE_S):
        while (reply := await client.get("/history", after=0)).status == 200:
            await pause()
    assert (reply.status, reply.headers["zq-error"]) == (410, "records_gone")
    assert reply.doc["min_seq"] == 3
    found = await history(client)
    assert ([r["seq"] for r in found["records"]], found["min_seq"]) == ([3], 3)
    assert (await history(client, after=2))["records"] == found["records"]


async def test_a_cursor_that_was_never_reached_is_409(client: Client) -> None:
    reply = await client.get("/history", after=1)
    assert (reply.status, reply.headers["zq-error"]) == (409, "cursor_ahead")
    assert "the last one is 0" in reply.error


async def test_what_makes_no_sense_is_400(client: Client) -> None:
    for query in [
        "limit=0",
        "limit=10001",
        "limit=x",
        "after=-1",
        "until=1.5",
        "wait_ms=30001",
        "queue=a",
    ]:
        assert (await client.get(f"/history?{query}")).status == 400, query


async def test_what_is_not_offered_is_406(client: Client) -> None:
    reply = await client.send("GET", "/history", headers={"accept": "text/csv"})
    assert reply.status == 406


# Waiting


async def test_whoever_waits_gets_the_next_records(client: Client) -> None:
    await finish(client, 1)
    request = asyncio.create_task(history(client, after=1, wait_ms=LONG_MS))
    await until_waiting(client)
    await finish(client, 1)
    assert [record["seq"] for record in (await request)["records"]] == [2]


async def test_waiting_ends_with_nothing_when_the_time_is_over(client: Client) -> None:
    request = asyncio.create_task(history(client, wait_ms=LONG_MS))
    await until_waiting(client)
    client.site.clock.advance(LONG_MS)
    assert (await request)["records"] == []


async def test_nobody_waits_for_what_there_is_or_did_not_ask_for(client: Client) -> None:
    await finish(client, 2)
    assert len((await history(client, after=1, wait_ms=LONG_MS))["records"]) == 1
    assert (await history(client, after=2, until=2, wait_ms=LONG_MS))["records"] == []


async def test_a_server_that_stops_lets_nobody_wait(site: Site) -> None:
    async with Client(site, JSON) as client:
        request = asyncio.create_task(history(client, wait_ms=LONG_MS))
        await until_waiting(client)
        await site.stop()
        assert (await request)["records"] == []


async def test_a_client_that_goes_away_leaves_nothing_behind(site: Site) -> None:
    async with Client(site, JSON) as client:
        connection = await RawConnection.open(site.port)
        await connection.send(b"GET /history?wait_ms=30000 HTTP/1.1\r\nHost: q\r\n\r\n")
        await until_waiting(client)
        await connection.close()
        async with asyncio.timeout(PATIENCE_S):
            while site.server.engine[HistoryReaders].waiting:
                await pause()


# What the disk has


async def page_in(client: Client) -> Reply:
    return await client.send("GET", "/history", headers=LINES)


@pytest.mark.settings(history=DAY_MS, default_commit_mode="buffered")
async def test_a_record_is_shown_once_the_disk_has_it(site: Site) -> None:
    """In buffered mode a power cut could take it back and give its number to another."""
    async with Client(site, JSON) as client:
        await finish(client, 2)
        assert (await page_in(client)).body == b""
        request = asyncio.create_task(history(client, wait_ms=LONG_MS))
        await until_waiting(client)
        # The next tick is to be synced, for the last one that was is a second ago.
        site.clock.advance(1_000)
        await client.enqueue()
        assert [record["seq"] for record in (await request)["records"]] == [1, 2]


@pytest.mark.settings(history=DAY_MS, default_commit_mode="buffered")
async def test_a_pause_brings_the_records_to_the_disk(site: Site) -> None:
    async with Client(site, JSON) as client:
        await finish(client, 2)
        request = asyncio.create_task(history(client, wait_ms=LONG_MS))
        await until_waiting(client)
        site.clock.advance(1_000)
        assert len((await request)["records"]) == 2


# With other settings


@pytest.mark.settings(history=0)
async def test_without_a_history_there_is_none_and_the_answer_says_so(site: Site) -> None:
    async with Client(site, JSON) as client:
        await finish(client, 1)
        found = await history(client)
    assert (found["recording"], found["max_seq"], found["records"]) == (False, 0, [])


@pytest.mark.settings(history=DAY_MS)
async def test_what_was_recorded_stays_readable_when_no_more_is(site: Site) -> None:
    async with Client(site, JSON) as client:
        await finish(client, 1)
        await site.restart(history=0, device="renamed")
        await finish(client, 1)
        found = await history(client)
    assert (found["recording"], len(found["records"])) == (False, 1)


@pytest.mark.settings(history=DAY_MS, device="before")
async def test_records_keep_the_device_that_they_were_written_on(site: Site) -> None:
    async with Client(site, JSON) as client:
        await finish(client, 1)
        await site.restart(device="after")
        await finish(client, 1)
        found = await history(client)
    assert [record["device"] for record in found["records"]] == ["before", "after"]
