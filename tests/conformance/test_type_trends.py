"""How jobs of each type ended, and how long they ran."""

from zq.features.trends.model import DAY_MS, FIVE_MINUTES_MS, HOUR_MS, MINUTE_MS, MOST_TYPES
from zq.features.trends.service import LEAST_RUNS

from .client import Client, Doc, new_job
from .test_trends import pass_minutes


async def types(client: Client, **params: object) -> list[Doc]:
    reply = await client.get("/stats/types", **params)
    assert reply.status == 200, reply.doc
    assert reply.doc["known"] >= len(reply.doc["types"])
    found: list[Doc] = reply.doc["types"]
    return found


async def run(client: Client, type: str, run_ms: int, queue: str = "q", **fails: object) -> None:
    """One job from its arrival to its end: a failure, if something is said about that."""
    stream = await client.take(queue=queue)
    job = await client.enqueue(queue=queue, type=type)
    assert (await stream.job())["id"] == job["id"]
    client.site.clock.advance(run_ms)
    if fails:
        await client.fail(job["id"], **fails)
    else:
        await client.succeed(job["id"])
    await stream.close()


async def test_types_are_told_apart_and_the_slowest_or_most_failing_come_first(
    client: Client,
) -> None:
    clock = client.site.clock
    clock.advance(HOUR_MS - client.site.now % HOUR_MS)
    for ms in (100, 100, 1000):
        await run(client, "fast", ms)
    await run(client, "slow", 8000)
    await run(client, "slow", 9000, message="no", kill=True)
    await run(client, "fast", 100, queue="r")
    passed = (client.site.now + 55 * MINUTE_MS) % HOUR_MS / 1000
    assert [(each["type"], each["queue"]) for each in await types(client)] == [
        *(("slow", "q"), ("fast", "q"), ("fast", "r"))
    ]
    slow, fast = await types(client, queue="q")
    assert (slow["done"], slow["failed"], slow["failed_share"]) == (1, 1, 0.5)
    assert slow["rate"] == round(2 / passed, 3)
    assert 7168 <= slow["run"]["p50"] <= slow["run"]["p99"] <= 10_240
    assert (fast["done"], fast["failed"], fast["failed_share"]) == (3, 0, 0.0)
    assert 96 <= fast["run"]["p50"] <= 112
    assert 896 <= fast["run"]["p95"] <= fast["run"]["p99"] <= 1024
    assert (await types(client, sort="failing"))[0]["type"] == "slow"
    assert [each["done"] for each in await types(client, sort="rate")] == [3, 1, 1]
    assert await types(client, queue="none") == []


async def test_a_cancelled_and_a_returned_job_are_neither_done_nor_failed(client: Client) -> None:
    stream = await client.take(queue="q", prefetch=2)
    cancelled, returned = [(await client.enqueue(queue="q", type=t))["id"] for t in "cr"]
    await stream.jobs(2)
    await client.post(f"/jobs/{cancelled}/cancel", {"force": True})
    await stream.close()
    await client.until(returned, status="ready")
    (only,) = await types(client)
    assert (only["type"], only["done"], only["failed"]) == ("c", 0, 0)


async def test_a_refused_failure_is_none(client: Client) -> None:
    stream = await client.take(queue="q")
    job = await client.enqueue(queue="q", type="t")
    await stream.job()
    reply = await client.post(f"/jobs/{job['id']}/failure", {"message": "m", "lease": 7})
    assert reply.status == 409
    await client.succeed(job["id"])
    (only,) = await types(client)
    assert (only["done"], only["failed"]) == (1, 0)


async def test_types_are_kept_by_five_minutes_by_hour_and_by_day_over_restarts(
    client: Client,
) -> None:
    clock = client.site.clock
    clock.advance(DAY_MS - client.site.now % DAY_MS)
    await run(client, "t", 100)
    clock.advance(6 * MINUTE_MS)
    await run(client, "t", 100, message="no", kill=True)
    await client.site.restart()
    reply = await client.get("/stats/types", type="t", queue="q")
    doc = reply.doc
    assert (doc["step_ms"], len(doc["points"])) == (FIVE_MINUTES_MS, 12)
    assert doc["open_ms"] == client.site.now % FIVE_MINUTES_MS
    assert [(point["done"], point["failed"]) for point in doc["points"]][-2:] == [(1, 0), (0, 1)]
    assert "run" not in doc["points"][0]
    assert 96 <= doc["points"][-1]["run"]["p50"] <= 112
    clock.advance(2 * HOUR_MS)
    await run(client, "t", 100)
    await pass_minutes(client)
    for over, n in (("1h", (1, 0)), ("24h", (2, 1)), ("7d", (2, 1))):
        (only,) = await types(client, range=over)
        assert (only["done"], only["failed"]) == n
    hours = (await client.get("/stats/types", type="t", range="24h")).doc["points"]
    assert [point["done"] + point["failed"] for point in hours][-3:] == [2, 0, 1]
    days = (await client.get("/stats/types", type="t", range="7d")).doc
    assert [point["done"] for point in days["points"]] == [0] * 6 + [2]
    clock.advance(9 * DAY_MS)
    for _ in range(3):  # each new time takes those of one time with it
        await run(client, "t", 100)
        await pass_minutes(client, 60)
    rows = client.site.run_sql("SELECT length, sum(done) FROM type_trends GROUP BY 1")
    assert dict(rows) == {FIVE_MINUTES_MS: 2, HOUR_MS: 3, DAY_MS: 3}
    assert (await client.send("POST", "/reset")).status == 204
    assert client.site.run_sql("SELECT length FROM type_trends") == []


async def test_types_beyond_the_limit_count_together(client: Client) -> None:
    names = [f"t{n}" for n in range(MOST_TYPES + 7)]
    for part in (names, ["new", "t3"]):
        jobs = [new_job(queue="q", type=type) for type in part]
        await client.call("POST", "/jobs/bulk", {"jobs": jobs})
        stream = await client.take(queue="q", prefetch=len(jobs))
        taken = [job["id"] for job in await stream.jobs(len(jobs))]
        await client.post("/jobs/success", {"ids": taken})
        await stream.close()
        await pass_minutes(client)
    found = (await client.get("/stats/types", sort="rate")).doc
    assert (found["known"], len(found["types"])) == (MOST_TYPES + 1, 200)
    first, second = [(each["queue"], each["type"], each["done"]) for each in found["types"][:2]]
    assert (first, second) == (("*", "*", 7 + 1), ("q", "t3", 2))


async def test_a_run_is_stuck_by_what_is_usual_for_its_type(client: Client) -> None:
    for _ in range(LEAST_RUNS):
        await run(client, "quick", 100)
    for _ in range(LEAST_RUNS):
        await run(client, "long", 10 * MINUTE_MS)
    stream = await client.take(queue="q", prefetch=3)
    jobs = {type: await client.enqueue(queue="q", type=type) for type in ("quick", "long", "new")}
    await stream.jobs(3)
    client.site.clock.advance(2 * MINUTE_MS)
    (quick,) = (await client.get("/stuck")).doc["jobs"]
    assert quick["id"] == jobs["quick"]["id"]
    assert 96 <= quick["p99_ms"] <= 112
    client.site.clock.advance(24 * MINUTE_MS)
    found = {job["id"] for job in (await client.get("/stuck")).doc["jobs"]}
    assert found == {jobs["quick"]["id"], jobs["long"]["id"]}
    client.site.clock.advance(24 * MINUTE_MS)  # what nobody knows goes by its queue
    assert len((await client.get("/stuck")).doc["jobs"]) == 3


async def test_bad_ranges_sorts_and_queues_are_refused(client: Client) -> None:
    for params in ({"range": "5m"}, {"sort": "name"}, {"queue": "a*"}):
        reply = await client.get("/stats/types", **params)
        assert (reply.status, next(iter(params)) in reply.error) == (400, True)
