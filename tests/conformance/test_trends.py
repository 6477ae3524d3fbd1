"""What happened over minutes, hours and days, and how long jobs waited and ran."""

from statistics import quantiles

import pytest
from store.rig import only_sqlite

from zq.features.trends.model import DAY_MS, HOUR_MS, MINUTE_MS, MOST_QUEUES, STEP_MS, quantile

from .client import Client, Doc, new_job
from .metrics import Metrics, Scraper


async def history(client: Client, over: str = "1h", **params: object) -> Doc:
    reply = await client.get("/stats/history", range=over, **params)
    assert reply.status == 200, reply.doc
    doc: Doc = reply.doc
    return doc


def totals(doc: Doc) -> dict[str, int]:
    """What the points count together."""
    points = doc["points"]
    names = [name for name in points[0] if name not in ("at", "wait", "run")]
    return {name: n for name in names if (n := sum(each[name] for each in points))}


async def run(client: Client, wait_ms: int, run_ms: int, queue: str = "q") -> None:
    """One job from its arrival to its end."""
    job = await client.enqueue(queue=queue)
    client.site.clock.advance(wait_ms)
    stream = await client.take(queue=queue)
    assert (await stream.job())["id"] == job["id"]
    client.site.clock.advance(run_ms)
    await client.succeed(job["id"])
    await stream.close()


async def pass_minutes(client: Client, minutes: int = 1) -> None:
    """Let minutes pass, and have those that are over stored: a later tick comes after that."""
    client.site.clock.advance(minutes * MINUTE_MS)
    await client.call("PATCH", "/queues/tick/settings", {"retry_limit": 1})


async def test_a_job_counts_in_its_minute_and_its_times_are_known(client: Client) -> None:
    begin = client.site.now - client.site.now % MINUTE_MS
    await run(client, 100, 1000)
    await pass_minutes(client)
    await client.enqueue(queue="other")
    one = await history(client, queue="q")
    assert (one["range"], one["step_ms"], len(one["points"])) == ("1h", MINUTE_MS, 60)
    assert [point["at"] for point in one["points"]][-2:] == [begin, begin + MINUTE_MS]
    point = one["points"][-2]
    assert 64 <= point.pop("wait")["p50"] <= 128
    assert 512 <= point.pop("run")["p99"] <= 1024
    assert point == {
        "at": begin,
        "enqueued": 1,
        "delivered": 1,
        "completed": 1,
        "failed": 0,
        "died": 0,
        "expired": 0,
    }
    assert totals(one) == {"enqueued": 1, "delivered": 1, "completed": 1}
    assert one["wait"]["powers"] == {"7": 1}
    assert one["run"]["powers"] == {"10": 1}
    assert 64 <= one["wait"]["p50_ms"] <= 128
    assert 512 <= one["run"]["p99_ms"] <= 1024
    everything = await history(client)
    assert totals(everything) == {"enqueued": 2, "delivered": 1, "completed": 1}
    assert "queue" not in everything
    assert totals(await history(client, "5m")) == totals(everything)
    assert (await history(client, queue="none"))["wait"] == {"count": 0}


async def test_each_point_has_its_percentiles_and_the_last_one_says_how_far_it_is(
    client: Client,
) -> None:
    clock = client.site.clock
    clock.advance(MINUTE_MS - client.site.now % MINUTE_MS)
    await run(client, 0, 10)
    await pass_minutes(client)
    await run(client, 0, 3000)
    clock.advance(4000)
    found = await history(client, queue="q")
    assert found["open_ms"] == client.site.now - found["points"][-1]["at"] == 7010
    ran = [point.get("run") for point in found["points"]]
    assert ran[:-2] == [None] * 58
    assert 8 <= ran[-2]["p50"] <= ran[-2]["p99"] <= 16
    assert 2048 <= ran[-1]["p50"] <= ran[-1]["p99"] <= 4096
    assert "wait" in found["points"][-1]
    assert (await history(client, "24h"))["open_ms"] == client.site.now % (5 * MINUTE_MS)


async def test_five_minutes_have_points_of_five_seconds_since_the_start(client: Client) -> None:
    clock = client.site.clock
    clock.advance(STEP_MS - client.site.now % STEP_MS)
    await client.site.restart()
    began = client.site.now
    for _ in range(3):
        await client.enqueue(queue="q")
        await client.enqueue(queue="r")
        clock.advance(STEP_MS)
    clock.advance(1000)
    found = await history(client, "5m", queue="q")
    assert (found["step_ms"], found["open_ms"]) == (STEP_MS, 1000)
    came = [(point["at"] - began, point["enqueued"]) for point in found["points"]]
    assert came == [(0, 1), (STEP_MS, 1), (2 * STEP_MS, 1), (3 * STEP_MS, 0)]
    everything = await history(client, "5m")
    assert [point["enqueued"] for point in everything["points"]] == [2, 2, 2, 0]
    clock.advance(4 * MINUTE_MS + 50_000)
    found = await history(client, "5m", queue="q")
    assert [point["enqueued"] for point in found["points"]] == [1, *[0] * 59]
    assert totals(await history(client, queue="q")) == {"enqueued": 3}


async def test_five_minutes_have_a_point_though_the_clock_was_set_to_before_the_start(
    client: Client,
) -> None:
    await client.enqueue(queue="q")
    client.site.clock.step(-HOUR_MS)
    for query in ({}, {"queue": "q"}):
        (point,) = (await history(client, "5m", **query))["points"]
        assert client.site.now - STEP_MS < point["at"] <= client.site.now


async def test_failures_deaths_and_expiries_count_and_returned_jobs_have_not_run(
    client: Client,
) -> None:
    for kill in (False, True):
        job = await client.enqueue(queue="q", retry_limit=5)
        stream = await client.take(queue="q")
        assert (await stream.job())["id"] == job["id"]
        await client.fail(job["id"], message="no", kill=kill)
        await stream.close()
    job = await client.enqueue(queue="r")
    stream = await client.take(queue="r")
    await stream.job()
    await stream.close()
    await client.until(job["id"], status="ready")
    await client.enqueue(queue="e", ttl_ms=10)
    await pass_minutes(client, 2)
    found = await history(client, queue="q")
    assert totals(found) == {"enqueued": 2, "delivered": 2, "failed": 2, "died": 1}
    assert found["run"]["count"] == 2
    assert (await history(client, queue="r"))["run"] == {"count": 0}
    assert totals(await history(client, queue="e")) == {"enqueued": 1, "expired": 1}


async def test_minutes_survive_a_stop_and_add_up_with_those_after_it(client: Client) -> None:
    await run(client, 1, 1)
    await client.site.restart()
    await run(client, 1, 1)
    assert totals(await history(client, queue="q"))["completed"] == 2
    await client.site.restart()
    found = await history(client, queue="q")
    assert totals(found)["completed"] == 2
    assert found["run"]["count"] == 2


@only_sqlite
async def test_a_kill_loses_the_open_minute_alone(client: Client) -> None:
    await run(client, 1, 1)
    await pass_minutes(client)
    await run(client, 1, 1)
    await client.site.crash()
    assert totals(await history(client, queue="q"))["completed"] == 1


async def test_a_minute_is_stored_although_nothing_happens_after_it(client: Client) -> None:
    await run(client, 1, 1)
    client.site.clock.advance(MINUTE_MS)
    # The answer comes after the tick that stores the minute, which began before this request.
    await client.call("PATCH", "/queues/tick/settings", {"retry_limit": 1})
    rows = client.site.run_sql("SELECT length, queue, completed FROM trends ORDER BY 1, 2")
    assert rows == [(length, queue, 1) for length in (MINUTE_MS, HOUR_MS) for queue in ("", "q")]


async def test_queues_beyond_the_limit_count_together(client: Client) -> None:
    jobs = [new_job(queue=f"q{n}") for n in range(MOST_QUEUES + 7)]
    for _ in range(2):
        reply = await client.call("POST", "/jobs/bulk", {"jobs": jobs})
        assert reply.status in (200, 201), reply.doc
        await pass_minutes(client)
    await client.call("POST", "/jobs/bulk", {"jobs": [new_job(queue=f"new{n}") for n in range(3)]})
    await pass_minutes(client)
    count = "SELECT at, count(*) FROM trends WHERE length = 60000 GROUP BY 1"
    names = dict(client.site.run_sql(count))
    (hour,) = client.site.run_sql(
        "SELECT count(*) FILTER (WHERE queue NOT IN ('', '*')),"
        " sum(enqueued) FILTER (WHERE queue = '*'), sum(enqueued) FILTER (WHERE queue = '')"
        " FROM trends WHERE length = 3600000"
    )
    assert sorted(names.values()) == [4, MOST_QUEUES + 2, MOST_QUEUES + 2]
    assert hour == (MOST_QUEUES, 2 * 7 + 3, 2 * len(jobs) + 3)
    assert totals(await history(client)) == {"enqueued": 2 * len(jobs) + 3}
    assert totals(await history(client, queue="q3")) == {"enqueued": 2}


async def test_hours_add_up_minutes_and_outlive_them(client: Client) -> None:
    for _ in range(3):
        await run(client, 1, 1)
        await pass_minutes(client)
    await pass_minutes(client, 49 * 60)
    for _ in range(3):  # each minute takes those of one time with it
        await run(client, 1, 1)
        await pass_minutes(client)
    count = "SELECT length, sum(completed) FROM trends WHERE queue = 'q' GROUP BY 1"
    kept = dict(client.site.run_sql(count))
    assert kept == {MINUTE_MS: 3, HOUR_MS: 6}
    assert totals(await history(client, "24h", queue="q"))["completed"] == 3
    week = await history(client, "7d", queue="q")
    assert (week["step_ms"], len(week["points"])) == (HOUR_MS, 168)
    assert totals(week)["completed"] == 6
    assert week["run"]["count"] == 6
    client.site.clock.jump(91 * DAY_MS)
    for _ in range(3):  # and so does each hour
        await run(client, 1, 1)
        await pass_minutes(client, 60)
    assert dict(client.site.run_sql(count)) == {MINUTE_MS: 3, HOUR_MS: 3}
    assert totals(await history(client, "90d", queue="q"))["completed"] == 3


async def test_a_clock_that_is_far_ahead_for_minutes_takes_no_hours_along(client: Client) -> None:
    for _ in range(4):
        await run(client, 1, 1)
        await pass_minutes(client, 60)
    before = totals(await history(client, "7d", queue="q"))["completed"]
    client.site.clock.step(200 * DAY_MS)
    for _ in range(5):
        await run(client, 1, 1)
        await pass_minutes(client)
    client.site.clock.step(-200 * DAY_MS)
    await pass_minutes(client)
    assert before == 4
    assert totals(await history(client, "7d", queue="q"))["completed"] >= 3


async def test_the_rates_of_five_minutes_say_when_a_queue_is_drained(client: Client) -> None:
    for _ in range(6):
        await client.enqueue(queue="q")
    client.site.clock.advance(MINUTE_MS)
    found = await history(client, queue="q")
    assert found["waiting"] == 6
    assert "drained_ms" not in found
    client.site.clock.advance(5 * MINUTE_MS)
    stream = await client.take(queue="q", prefetch=3)
    for job in [await stream.job() for _ in range(3)]:
        await client.succeed(job["id"])
    await stream.close()
    found = await history(client, queue="q")
    assert found["arrivals_per_second"] == 0
    assert found["drained_ms"] == pytest.approx(
        found["waiting"] / found["ends_per_second"] * 1000, rel=0.05
    )
    assert (await history(client, queue="empty"))["drained_ms"] == 0


async def test_bad_spans_and_queues_are_refused(client: Client) -> None:
    for params in ({"range": "2h"}, {"queue": "a*"}):
        reply = await client.get("/stats/history", **params)
        assert reply.status == 400, reply.doc


def test_percentiles_lie_within_the_power_of_two_of_a_naive_count() -> None:
    times = [n * n % 7919 for n in range(1, 2000)]
    powers: dict[int, int] = {}
    for each in times:
        powers[each.bit_length()] = powers.get(each.bit_length(), 0) + 1
    naive = quantiles(times, n=100)
    for percent in (50, 95, 99):
        found = quantile(powers, percent / 100)
        assert found is not None
        assert naive[percent - 1] / 2 <= found <= naive[percent - 1] * 2
    assert quantile({}, 0.5) is None
    assert quantile({0: 3}, 0.5) == 0


async def test_the_times_since_the_start_are_histograms_that_never_become_less(
    client: Client, scrape: Scraper
) -> None:
    def counted(metrics: Metrics, name: str, queue: str) -> dict[str, float]:
        bounds = ("0.064", "0.128", "0.512", "1.024", "+Inf")
        found = {le: metrics.values.get((f"{name}_bucket", le, queue)) for le in bounds}
        return {le: n for le, n in found.items() if n is not None}

    await run(client, 100, 1000)
    for times in (1, 2):
        metrics = await scrape()
        waited = {"0.064": 0, "0.128": times, "0.512": times, "1.024": times, "+Inf": times}
        assert counted(metrics, "zq_wait_seconds", "q") == waited
        ran = {"0.064": 0, "0.128": 0, "0.512": 0, "1.024": times, "+Inf": times}
        assert counted(metrics, "zq_run_seconds", "q") == ran
        await pass_minutes(client)
        await run(client, 100, 1000)


@pytest.mark.parametrize("by", [-HOUR_MS, HOUR_MS], ids=["back", "ahead"])
async def test_a_clock_that_is_set_moves_the_points_and_counts_each_job_once(
    client: Client, by: int
) -> None:
    clock = client.site.clock
    clock.advance(4 * HOUR_MS - client.site.now % HOUR_MS + 10_000)
    # It is set before a job comes, where one runs, and where all is done.
    clock.step(by)
    job = await client.enqueue(queue="q")
    clock.advance(100)
    stream = await client.take(queue="q")
    assert (await stream.job())["id"] == job["id"]
    clock.advance(500)
    clock.step(by)
    clock.advance(500)
    await client.succeed(job["id"])
    await stream.close()
    clock.step(by)
    await run(client, 100, 1000)
    await pass_minutes(client)
    # What lies ahead of the clock is shown once its time has come.
    clock.step(max(-3 * by, 0))
    found = await history(client, "24h", queue="q")
    assert totals(found) == {"enqueued": 2, "delivered": 2, "completed": 2}
    assert found["wait"]["p99_ms"] <= 128
    assert 512 <= found["run"]["p50_ms"] <= found["run"]["p99_ms"] <= 1024
    await pass_minutes(client)
    await client.site.restart()
    assert totals(await history(client, "24h", queue="q")) == totals(found)
