"""Failures by their causes: counted by the tick, found again by filters of jobs."""

from zq.features.failures.model import KEPT_MS, MOST_GROUPS, MOST_TYPES, cause_of
from zq.features.trends.model import DAY_MS, HOUR_MS, MINUTE_MS

from .client import Client, Doc, ids

KEEP = {"retention": {"dead_ms": 60_000}}


async def failures(client: Client, over: str = "1h", **params: object) -> Doc:
    reply = await client.get("/failures", range=over, **params)
    assert reply.status == 200, reply.doc
    assert (reply.doc["rule"], reply.doc["range"]) == (1, over)
    found: Doc = reply.doc
    return found


async def causes(client: Client, over: str = "1h", **params: object) -> list[Doc]:
    found: list[Doc] = (await failures(client, over, **params))["causes"]
    return found


async def failed(client: Client, message: str, queue: str = "q", **fields: object) -> str:
    """The id of a job that has failed so."""
    job = await client.enqueue(queue=queue, **KEEP)
    stream = await client.take(queue=queue)
    assert (await stream.job())["id"] == job["id"]
    await client.fail(job["id"], message=message, kill=True, **fields)
    await stream.close()
    found: str = job["id"]
    return found


async def test_failures_of_one_cause_are_one_group_over_queues(client: Client) -> None:
    assert await causes(client) == []
    start = client.site.now
    await failed(client, "421 for 'ann'", error_type="Smtp")
    await failed(client, "422 for 'ann'", error_type="Smtp")
    client.site.clock.advance(5)
    other = await failed(client, "450 for 'bob'", queue="r", error_type="Smtp")
    (cause,) = await causes(client)
    assert cause == {
        "id": cause_of("Smtp", "421 for 'ann'").signature,
        "error_type": "Smtp",
        "message": "<n> for <text>",
        "count": 3,
        "bars": [0] * 11 + [3],
        "before": 0,
        "is_new": True,
        "queues": ["q", "r"],
        "types": ["test"],
        "total": 3,
        "since": start,
        "latest": start + 5,
        "sample": other,
        "dead": 3,
    }
    (only,) = await causes(client, queue="q")
    assert (only["count"], only["queues"], only["dead"], only["latest"]) == (2, ["q"], 2, start)
    assert await causes(client, queue="none") == []


async def test_the_range_slides_and_is_compared_with_as_long_a_time_before_it(
    client: Client,
) -> None:
    clock = client.site.clock
    clock.advance(HOUR_MS - client.site.now % HOUR_MS)
    for n in range(4):
        await failed(client, f"a {n}")
    clock.advance(20 * MINUTE_MS + 30_000)
    await failed(client, "a 4")
    await client.site.restart()
    found = await failures(client)
    assert (found["step_ms"], found["open_ms"], found["known"]) == (5 * MINUTE_MS, 270_000, 1)
    (cause,) = found["causes"]
    assert (cause["bars"], cause["is_new"]) == ([0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1], True)
    assert "times" not in cause
    clock.advance(40 * MINUTE_MS)  # the first ones were 60 minutes and 30 seconds ago
    (cause,) = (found := await failures(client))["causes"]
    assert (cause["count"], cause["before"], cause["total"]) == (1, 4, 5)
    assert (cause["is_new"], cause["times"]) == (False, round(1 / 4 * 60 / 59.5, 2))
    assert (found["failed"], found["failed_before"]) == (1, 4)
    clock.advance(20 * MINUTE_MS)
    assert await causes(client) == []
    (cause,) = await causes(client, "24h")
    assert (cause["count"], cause["bars"][-2:], cause["is_new"]) == (5, [5, 0], True)
    (cause,) = await causes(client, "7d")
    assert (len(cause["bars"]), cause["count"]) == (28, 5)
    await failed(client, "a 6")
    (cause,) = await causes(client, "5m")
    assert (cause["bars"], cause["before"]) == ([0, 0, 0, 0, 1], 0)
    assert len((await causes(client, "15m"))[0]["bars"]) == 15


async def test_old_counts_are_deleted_with_the_minutes_that_are_stored(client: Client) -> None:
    clock = client.site.clock
    await failed(client, "a")
    for ms in (2 * HOUR_MS + MINUTE_MS, 15 * DAY_MS):
        clock.jump(ms)
        for _ in range(2):
            await client.enqueue(queue="other")
            clock.advance(MINUTE_MS)
        await client.call("PATCH", "/queues/tick/settings", {"retry_limit": 1})
        kept = client.site.run_sql("SELECT length FROM failure_counts")
        assert kept == ([(HOUR_MS,)] if ms < DAY_MS else [])


async def test_the_order_is_by_count_by_queue_or_by_time(client: Client) -> None:
    for message, queue in (("often", "z"), ("often", "z"), ("first", "b"), ("last", "a")):
        client.site.clock.advance(1)
        await failed(client, message, queue)

    async def order(**params: str) -> list[str]:
        return [cause["message"] for cause in await causes(client, "1h", **params)]

    assert await order() == ["often", "last", "first"]
    assert await order(order="queue") == ["last", "first", "often"]
    assert await order(order="time") == ["last", "first", "often"]
    assert all("error_type" not in cause for cause in await causes(client))
    for params in ({"order": "size"}, {"range": "2h"}):
        reply = await client.get("/failures", **params)
        assert (reply.status, next(iter(params)) in reply.error) == (400, True)


async def test_a_cause_tells_the_last_moment_with_a_name_before_it_began(client: Client) -> None:
    await failed(client, "early")
    for name in ("1.8.1", "1.8.2"):
        client.site.clock.advance(10)
        await client.post("/marks", {"text": name})
    client.site.clock.advance(10)
    await failed(client, "late")
    client.site.clock.advance(10)
    await client.post("/marks", {"text": "1.8.3"})
    await failed(client, "late")
    found = {cause["message"]: cause for cause in await causes(client)}
    assert "mark" not in found["early"]
    assert found["late"]["mark"] == {"at": found["late"]["since"] - 10, "text": "1.8.2"}


async def test_a_cause_knows_some_of_its_types(client: Client) -> None:
    for n in (*range(MOST_TYPES + 3), 0):
        job = await client.enqueue(queue="q", type=f"t{n:02}")
        stream = await client.take(queue="q")
        assert (await stream.job())["id"] == job["id"]
        await client.fail(job["id"], message="m", kill=True)
        await stream.close()
    (cause,) = await causes(client)
    assert cause["types"] == [f"t{n:02}" for n in range(MOST_TYPES)]


async def test_dead_jobs_of_a_cause_are_counted_until_they_come_back(client: Client) -> None:
    id = await failed(client, "a")
    await failed(client, "a")
    assert [cause["dead"] for cause in await causes(client)] == [2]
    await client.send("POST", f"/jobs/{id}/requeue")
    assert [cause["dead"] for cause in await causes(client)] == [1]


async def test_jobs_are_found_and_revived_by_the_group_of_their_latest_failure(
    client: Client,
) -> None:
    lost = [await failed(client, f"lost {n}") for n in range(2)]
    other = await failed(client, "other")
    by_message = {cause["message"]: cause["id"] for cause in await causes(client)}
    cause = by_message["lost <n>"]
    assert ids(await client.jobs(error=cause)) == lost
    assert await client.count(error=cause, status="dead") == 2
    assert await client.count(error=f"{cause},{by_message['other']}") == 3
    assert await client.count(error="1-unknown") == 0
    (record,) = (await client.get(f"/jobs/{lost[0]}/errors")).doc["errors"]
    assert record["signature"] == cause
    reply = await client.send("POST", f"/jobs/redrive?error={cause}")
    assert reply.doc == {"redriven": 2}
    assert (await client.job(other))["status"] == "dead"
    # A later failure of another cause takes a job out of the group, whose count stays.
    stream = await client.take(queue="q")
    assert (await stream.job())["id"] == lost[0]
    await client.fail(lost[0], message="other", kill=True)
    assert ids(await client.jobs(error=cause)) == lost[1:]
    assert [each["count"] for each in await causes(client) if each["id"] == cause] == [2]


async def test_an_empty_error_is_no_filter(client: Client) -> None:
    await failed(client, "a")
    assert (await client.send("POST", "/jobs/redrive?error=")).status == 400
    assert (await client.get("/jobs/count", error="")).status == 400


async def test_groups_are_bounded_and_the_rest_is_counted_together(client: Client) -> None:
    await failed(client, "known")
    site = client.site
    await site.stop()
    rest = f"NULL, 'm', 1, {site.now}, {site.now}, 1, '[]'"
    old = ", ".join(f"('1-old', 'q{n}', {rest})" for n in range(MOST_GROUPS - 1))
    site.run_sql(f"INSERT INTO error_groups VALUES {old}")
    await site.start()
    for message in ("new one", "new other", "known"):
        await failed(client, message)
    found = {cause["message"]: cause for cause in await causes(client)}
    assert found.keys() == {"known", "other"}
    assert (found["known"]["count"], found["other"]["count"]) == (2, 2)
    assert found["other"]["queues"] == ["*"]
    # Groups that nobody has seen for a week make room.
    site.clock.advance(KEPT_MS + 1)
    await failed(client, "new one")
    assert "new one" in {cause["message"] for cause in await causes(client)}


async def test_a_reset_forgets_all_groups(client: Client) -> None:
    await failed(client, "a")
    assert (await client.send("POST", "/reset")).status == 204
    assert await causes(client, "7d") == []
