"""A server at a limit answers with an error and advice, and takes no harm."""

import asyncio
import json

import pytest
from store.rig import only_sqlite

from .client import Client, Reply, ids, new_job
from .metrics import Scraper
from .raw import RawConnection
from .site import Site
from .streams import PATIENCE_S, pause

KIB = 1024


def assert_try_again(reply: Reply) -> None:
    """A 503 that says what is wrong and when to come back."""
    assert reply.status == 503, reply.doc
    assert reply.error
    assert int(reply.headers["retry-after"]) >= 1


async def announced(site: Site, size: int) -> RawConnection:
    """A connection whose enqueue of `size` bytes has begun: its body is still to come."""
    connection = await RawConnection.open(site.port)
    head = b"POST /jobs HTTP/1.1\r\nHost: q\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    await connection.send(head % size)
    assert (await connection.reply()).status == 100
    return connection


@only_sqlite
async def test_a_full_disk_refuses_enqueues_but_takes_acknowledgements(client: Client) -> None:
    done, failed = await client.enqueue_many(2)
    await client.site.restart(disk_reserve=2**52)
    for target, doc in [("/jobs", new_job()), ("/jobs/bulk", {"jobs": [new_job()]})]:
        reply = await client.post(target, doc)
        assert (reply.status, reply.media_type) == (507, client.wire.media_type)
        assert reply.error
    stream = await client.take(prefetch=2)
    assert ids(await stream.jobs(2)) == [done, failed]
    await client.succeed(done)
    await client.fail(failed, kill=True)
    assert ids(await client.jobs()) == [failed]


@pytest.mark.settings(max_inbox_jobs=10)
async def test_a_full_inbox_refuses_enqueues_with_503_and_advice(client: Client) -> None:
    with client.site.busy():
        posts = [asyncio.create_task(client.post("/jobs", new_job())) for _ in range(30)]
        await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
    replies = await asyncio.gather(*posts)
    refused = [reply for reply in replies if reply.status == 503]
    stored = [reply for reply in replies if reply.status == 201]
    assert len(refused) + len(stored) == 30
    assert stored
    assert refused
    for reply in refused:
        assert_try_again(reply)
    assert await client.count() == len(stored)
    assert (await client.post("/jobs", new_job())).status == 201


@pytest.mark.settings(max_inbox_jobs=20)
async def test_acknowledgements_pass_where_enqueues_are_refused(client: Client) -> None:
    held = await client.enqueue_many(10, queue="held")
    stream = await client.take(prefetch=0, queue="held")
    await stream.jobs(len(held))
    bulk = {"jobs": [new_job()] * 20}
    enqueues = [client.post("/jobs/bulk", bulk) for _ in range(20)]
    acknowledgements = [client.post("/jobs/success", {"ids": [job_id]}) for job_id in held]
    replies = await asyncio.gather(*enqueues, *acknowledgements)
    assert {reply.status for reply in replies[:20]} == {201, 503}
    assert {reply.status for reply in replies[20:]} == {204}


@pytest.mark.settings(max_body=100 * KIB, max_inbox_bytes=100 * KIB)
async def test_bodies_in_memory_are_bounded_but_acknowledgements_pass(client: Client) -> None:
    held = await client.in_flight()
    body = json.dumps(new_job(payload="x" * 90 * KIB)).encode()
    waiting = await announced(client.site, len(body))
    assert_try_again(await client.post("/jobs", new_job(payload="x" * 20 * KIB)))
    await client.succeed(held["id"])
    await waiting.send(body)
    assert (await waiting.reply()).status == 201
    await waiting.close()
    assert (await client.post("/jobs", new_job(payload="x" * 20 * KIB))).status == 201


@pytest.mark.settings(max_body=100 * KIB, max_inbox_bytes=100 * KIB)
async def test_a_body_that_is_cut_off_gives_its_memory_back(client: Client) -> None:
    connection = await announced(client.site, 90 * KIB)
    await connection.send(b"x" * 10 * KIB)
    await connection.reset()
    async with asyncio.timeout(PATIENCE_S):
        while (await client.post("/jobs", new_job(payload="x" * 90 * KIB))).status != 201:
            await pause()
    assert await client.count() == 1


async def test_the_jobs_of_a_bulk_count_as_memory_besides_its_body(
    client: Client, scrape: Scraper
) -> None:
    with client.site.busy():
        bulk = asyncio.create_task(client.post("/jobs/bulk", {"jobs": [new_job()] * 300}))
        await scrape.until(lambda m: m["zq_inbox_bytes"] > 300 * KIB or bulk.done())
        # Whoever waits for another program's lock for too long is refused.
        assert not bulk.done() or (await bulk).status == 503
    await bulk
    await scrape.until(lambda m: m["zq_inbox_bytes"] == 0)


@pytest.mark.settings(read_timeout=1)
async def test_a_read_that_takes_too_long_is_503_with_advice(client: Client) -> None:
    for _ in range(6):
        await client.enqueue_many(10_000)
    # No index serves this: every row is looked at, which takes any machine more than a millisecond.
    assert_try_again(await client.get("/jobs", attempts="7"))
    await client.site.restart(read_timeout=20_000)
    assert (await client.get("/jobs", attempts="7")).status == 200


async def test_a_search_that_is_cut_short_goes_on_where_it_has_stopped(client: Client) -> None:
    await client.enqueue(payload={"user": 7})
    await client.enqueue_many(1_500)
    # The last one of a batch says whether there is time for another.
    wanted = {"filter": ".user? == 7", "order": "desc", "search_ms": 0}
    page = (await client.get("/jobs", **wanted)).doc
    assert page["jobs"] == [] and page["searched_to"] in page["pages"]["next"]
    page = (await client.get("/jobs", **wanted, **{"from": page["searched_to"]})).doc
    assert [job["payload"] for job in page["jobs"]] == [{"user": 7}]
    whole = (await client.get("/jobs", filter=".user? == 7")).doc
    assert len(whole["jobs"]) == 1 and "searched_to" not in whole
    assert (await client.get("/jobs", search_ms=60_001)).status == 400


def assert_too_large(reply: Reply, code: str, setting: str) -> None:
    """A 413 that tells programs and people which limit it was."""
    assert (reply.status, reply.headers["zq-error"]) == (413, code)
    assert setting in reply.error


@pytest.mark.settings(max_bulk_items=3)
async def test_more_items_in_bulk_than_the_limit_are_413(client: Client, scrape: Scraper) -> None:
    reply = await client.post("/jobs/bulk", {"jobs": [new_job()] * 4})
    assert_too_large(reply, "too_many_items", "--max-bulk-items")
    assert await client.count() == 0
    held = await client.enqueue_many(3) + await client.enqueue_many(1)
    stream = await client.take(prefetch=4)
    await stream.jobs(4)
    reply = await client.post("/jobs/success", {"ids": held})
    assert_too_large(reply, "too_many_items", "--max-bulk-items")
    assert await client.count(status="in_flight") == 4
    await client.succeed(*held[:3])
    assert (await scrape())["zq_refusals_total", "too_many_items"] == 2


@pytest.mark.settings(max_bulk_bytes=4 * KIB)
@pytest.mark.parametrize("door", ["native", "log", "queue"])
async def test_more_bytes_than_are_stored_in_one_go_are_413(client: Client, door: str) -> None:
    sent_as = {"content-type": "application/json"}
    if door != "native":
        await client.send("PUT", "/v0/topics/t", json.dumps({"type": door}).encode(), sent_as)

    async def sent(count: int, size: int) -> Reply:
        if door == "native":
            return await client.post("/jobs/bulk", {"jobs": [new_job(payload="x" * size)] * count})
        body = json.dumps({"records": [{"data": "x" * size}] * count}).encode()
        return await client.send("POST", "/v0/topics/t", body, sent_as)

    refused = await sent(5, KIB)
    assert refused.status == 413
    assert b"--max-bulk-bytes" in refused.body
    assert (await sent(3, KIB)).status in (200, 201)
    # A single payload has a limit of its own.
    assert (await sent(1, 5 * KIB)).status in (200, 201)


@pytest.mark.settings(max_payload=KIB)
async def test_a_payload_over_the_limit_is_413(client: Client, scrape: Scraper) -> None:
    fits, over = "x" * (KIB - 2), "x" * (KIB - 1)  # the quotes count
    await client.enqueue(payload=fits)
    assert_too_large(
        await client.post("/jobs", new_job(payload=over)), "payload_too_large", "--max-payload"
    )
    bulk = {"jobs": [new_job(payload=fits), new_job(payload=over)]}
    reply = await client.post("/jobs/bulk", bulk)
    assert_too_large(reply, "payload_too_large", "--max-payload")
    assert reply.error.startswith("jobs[1]: ")
    # Bytes count, not characters.
    assert (await client.post("/jobs", new_job(payload="\u00e9" * (KIB // 2)))).status == 413
    assert await client.count() == 1
    assert (await scrape())["zq_refusals_total", "payload_too_large"] == 3


@only_sqlite
@pytest.mark.settings(disk_reserve=2**52)
async def test_health_names_the_cause_for_which_enqueues_are_refused(
    client: Client, scrape: Scraper
) -> None:
    refused = await client.post("/jobs", new_job())
    health = await client.get("/health")
    assert health.status == 200
    assert health.doc["enqueues_refused"] == {"code": "storage_full", "error": refused.error}
    metrics = await scrape()
    assert metrics["zq_accepting_enqueues"] == 0
    assert metrics["zq_refusals_total", "storage_full"] == 1


async def test_health_says_nothing_of_refusals_where_there_are_none(client: Client) -> None:
    assert "enqueues_refused" not in (await client.get("/health")).doc


async def test_a_change_behind_another_programs_lock_is_refused_with_the_cause(
    client: Client, site: Site, scrape: Scraper
) -> None:
    with site.busy():
        # The server's clock stands still, so that nothing is refused before this test moves it.
        enqueue = asyncio.create_task(client.post("/jobs", new_job()))
        while (told := (await client.get("/health")).doc.get("database_locked")) is None:
            await pause()
        assert told["since"] == site.clock.now_ms()
        site.clock.advance(5_000)
        refused = await enqueue
        assert_try_again(refused)
        assert refused.headers["zq-error"] == "database_locked"
        assert refused.error == told["error"]
        assert (await client.get("/status")).doc["limits_reached"] == ["database_locked"]
        assert (await scrape())["zq_lock_wait_seconds"] == 5
        assert await client.count() == 0
    assert (await client.post("/jobs", new_job())).status == 201
    assert "database_locked" not in (await client.get("/health")).doc
    assert (await scrape())["zq_lock_wait_seconds"] == 0
