"""Cron entries that fire: at their times, after stops and pauses, and when the clock is set."""

import asyncio

import pytest

from .client import Client
from .crons import HOUR_MS, SECOND_MS, entry, entry_of, put, until_moved
from .metrics import Scraper
from .streams import PATIENCE_S, pause
from .test_schemas import put as put_schema


async def test_an_entry_fires_at_its_time_and_moves_on(client: Client) -> None:
    stream = await client.take(prefetch=5)
    before = (await client.post("/crons/g/entries", entry("e", "*/5 * * * * *"))).doc
    late = before["next_enqueue_at"] - client.site.now + 250
    client.site.clock.jump(late)
    job = await stream.job()
    assert job["ready_at"] == client.site.now == before["next_enqueue_at"] + 250
    after = await entry_of(client, "g", "e")
    assert after["last_enqueue_at"] == client.site.now
    assert after["next_enqueue_at"] == before["next_enqueue_at"] + 5 * SECOND_MS
    client.site.clock.advance(5 * SECOND_MS)
    assert (await stream.job())["id"] > job["id"]
    assert (await client.send("DELETE", "/crons/g/entries/e")).status == 204
    assert await client.exists(job["id"])


async def test_what_a_stop_has_missed_is_made_up_for_once(client: Client) -> None:
    await put(client, "g", entry("often"), entry("hourly", "0 * * * *", job={"queue": "h"}))
    await client.site.stop()
    client.site.clock.jump(24 * HOUR_MS)
    await client.site.start()
    stream = await client.take(prefetch=100)
    jobs = await stream.jobs(2)
    assert sorted(job["queue"] for job in jobs) == ["default", "h"]
    assert {job["ready_at"] for job in jobs} == {client.site.now}
    assert await client.count() == 2


@pytest.mark.parametrize("what", ["/crons/g", "/crons/g/entries/e"])
async def test_what_is_paused_moves_on_silently_and_makes_up_for_nothing(
    client: Client, what: str
) -> None:
    await put(client, "g", entry())
    await client.patch(what, {"paused": True})
    for _ in range(3):
        before = await entry_of(client, "g", "e")
        client.site.clock.jump(HOUR_MS)
        now = await until_moved(client, "g", "e", before)
        assert "last_enqueue_at" not in now
        assert now["next_enqueue_at"] > client.site.now
    await client.patch(what, {"paused": False})
    assert await client.count() == 0
    stream = await client.take(prefetch=5)
    client.site.clock.advance(SECOND_MS)
    await stream.job()
    assert await client.count() == 1


async def test_an_entry_of_a_queue_with_targets_is_told_of_in_each_of_them(client: Client) -> None:
    await client.call("PUT", "/queues/q/settings", {"fan_out": ["q@a", "q@b"]})
    streams = [await client.listen(queue=queue, types="enqueued") for queue in ("q@a", "q@b")]
    await put(client, "g", entry(job={"queue": "q"}))
    client.site.clock.advance(SECOND_MS)
    told = [(await stream.events(1))[0]["id"] for stream in streams]
    jobs = await client.jobs()
    assert [(job["id"], job["queue"]) for job in jobs] == list(
        zip(told, ("q@a", "q@b"), strict=True)
    )


async def test_a_duplicate_enqueues_nothing_and_the_schedule_moves_on(client: Client) -> None:
    await put(client, "g", entry(job={"unique_key": "k", "unique_while": "exists"}))
    owner = await client.enqueue(unique_key="k", unique_while="exists")
    for _ in range(2):
        before = await entry_of(client, "g", "e")
        client.site.clock.advance(SECOND_MS)
        after = await until_moved(client, "g", "e", before)
        assert after["last_enqueue_at"] == client.site.now
    assert [job["id"] for job in await client.jobs()] == [owner["id"]]


async def test_a_firing_without_room_is_tried_again_until_there_is_some(client: Client) -> None:
    await client.call("PUT", "/queues/default/settings", {"max_depth": 1})
    there = await client.enqueue()
    await put(client, "g", entry("e", "0 * * * *"))
    before = await entry_of(client, "g", "e")
    client.site.clock.jump(HOUR_MS)
    for _ in range(3):
        waiting = await until_moved(client, "g", "e", before)
        assert "last_enqueue_at" not in waiting
        assert waiting["next_enqueue_at"] == client.site.now + SECOND_MS
        before = waiting
        client.site.clock.advance(SECOND_MS)
    before = await until_moved(client, "g", "e", before)
    assert (await client.delete(f"/jobs/{there['id']}")).status == 204
    client.site.clock.advance(SECOND_MS)
    after = await until_moved(client, "g", "e", before)
    assert after["last_enqueue_at"] == client.site.now
    assert after["next_enqueue_at"] % HOUR_MS == 0
    assert await client.count() == 1


async def test_a_firing_whose_payload_does_not_match_is_tried_again_until_it_does(
    client: Client,
) -> None:
    await put(client, "g", entry(job={"payload": {"n": "one"}}))
    await put_schema(client, "default")
    before = await entry_of(client, "g", "e")
    for _ in range(2):
        client.site.clock.advance(SECOND_MS)
        before = await until_moved(client, "g", "e", before)
        assert "last_enqueue_at" not in before
    assert await client.count() == 0
    await client.send("DELETE", "/queues/default/schema")
    client.site.clock.advance(SECOND_MS)
    after = await until_moved(client, "g", "e", before)
    assert after["last_enqueue_at"] == client.site.now
    assert await client.count() == 1


async def test_a_clock_that_is_set_back_neither_doubles_nor_stops(client: Client) -> None:
    """A step: what becomes of a time that has come (9:00), and of a beat of minutes."""
    site = client.site
    site.clock.step(1_700_038_790_000 - site.now)  # 2023-11-15T08:59:50Z
    await put(client, "g", entry("daily", "0 9 * * *"), entry("beat", "* * * * *"), timezone="UTC")
    old = {name: await entry_of(client, "g", name) for name in ("daily", "beat")}
    site.clock.advance(10 * SECOND_MS)
    now = {name: await until_moved(client, "g", name, old[name]) for name in old}
    assert await client.count() == 2
    site.clock.step(-30 * SECOND_MS)  # slight: both wait for the clock
    site.clock.advance(SECOND_MS)
    await client.enqueue()
    assert {name: await entry_of(client, "g", name) for name in old} == now
    site.clock.step(-HOUR_MS)  # the beat goes on; 9:00 has come today
    site.clock.advance(SECOND_MS)
    beat = await until_moved(client, "g", "beat", now["beat"])
    assert beat["next_enqueue_at"] == site.now // 60_000 * 60_000 + 60_000
    assert await entry_of(client, "g", "daily") == now["daily"]
    site.clock.step(-4 * HOUR_MS)  # the clock was wrong
    site.clock.advance(SECOND_MS)
    daily = await until_moved(client, "g", "daily", now["daily"])
    assert daily["next_enqueue_at"] == old["daily"]["next_enqueue_at"]
    assert await client.count() == 3


async def test_a_clock_that_is_set_back_while_the_server_is_stopped_is_noticed(
    client: Client,
) -> None:
    await put(client, "g", entry("e", "0 9 * * *"), timezone="UTC")
    before = await entry_of(client, "g", "e")
    await client.site.stop()
    client.site.clock.step(-1000 * 24 * HOUR_MS)
    await client.site.start()
    after = await until_moved(client, "g", "e", before)
    assert 0 < after["next_enqueue_at"] - client.site.now <= 24 * HOUR_MS
    assert await client.count() == 0


async def test_reset_deletes_schedules(client: Client) -> None:
    await put(client, "g", entry())
    assert (await client.send("POST", "/reset")).status == 204
    assert (await client.get("/crons")).doc == {"crons": []}
    client.site.clock.advance(5 * SECOND_MS)
    assert await client.count() == 0


async def test_a_firing_is_an_event_and_is_counted(client: Client, scrape: Scraper) -> None:
    await put(client, "g", entry("e", "0 0 1 1 *", job={"queue": "q"}))
    assert (await scrape())["zq_cron_entries"] == 1
    listening = await client.listen(queue="q")
    before = await put(client, "g", entry(job={"queue": "q"}))
    client.site.clock.jump(before["entries"][0]["next_enqueue_at"] - client.site.now)
    event = await listening.event()
    assert (event["type"], event["queue"]) == ("enqueued", "q")
    metrics = await scrape()
    assert metrics["zq_cron_firings_total"] == 1
    assert metrics["zq_cron_lag_seconds"] == 0


async def test_a_schedule_that_cannot_be_evaluated_is_named_and_others_fire(
    client: Client, scrape: Scraper
) -> None:
    await put(client, "bad", entry())
    await put(client, "g", entry())
    client.site.run_sql("UPDATE cron_entries SET expression = '* * * * MON~FRI' WHERE cron = 'bad'")
    stream = await client.take(prefetch=5)
    client.site.clock.advance(SECOND_MS)
    async with asyncio.timeout(PATIENCE_S):
        while (told := (await client.get("/health")).doc.get("faulty_crons")) is None:
            await pause()
    await stream.job()
    (faulty,) = told["named"]
    assert (told["entries"], faulty["group"], faulty["entry"]) == (1, "bad", "e")
    bad = await entry_of(client, "bad", "e")
    assert bad["fault"] == faulty["reason"]
    assert "next_enqueue_at" not in bad
    assert "fault" not in await entry_of(client, "g", "e")
    assert (await scrape())["zq_cron_faulty_entries"] == 1
