"""How long a failed job waits and how long a finished one is kept."""

from typing import Any

import pytest

from .client import Client, Doc, ids

HOUR_MS = 3_600_000


async def delays(client: Client, count: int, **fields: Any) -> list[int]:
    """The back-off after each of `count` failures of one job, in milliseconds."""
    job = await client.in_flight(**fields)
    measured = []
    for _ in range(count):
        failed = await client.fail(job["id"])
        measured.append(failed["ready_at"] - client.site.now)
        client.site.clock.jump(measured[-1])
        await client.until(job["id"], status="in_flight")
    return measured


@pytest.mark.parametrize(
    ("exponent", "base_ms", "expected"),
    [
        (2, 100, [1_100, 4_100, 9_100]),
        (2, 500, [1_500, 4_500, 9_500]),
        (0, 0, [1_000, 1_000, 1_000]),
        (1.5, 1, [1_001, 2_829, 5_197]),
        (4, 15_000, [16_000, 31_000, 96_000]),
    ],
)
async def test_backoff_grows_by_the_power_of_the_attempts_in_seconds(
    client: Client, exponent: float, base_ms: int, expected: list[int]
) -> None:
    backoff = {"exponent": exponent, "base_ms": base_ms, "jitter_ms": 0}
    assert await delays(client, 3, backoff=backoff) == expected


@pytest.mark.settings(default_backoff_jitter=0)
async def test_the_default_backoff_is_the_fourth_power_and_15_seconds(client: Client) -> None:
    assert await delays(client, 3) == [16_000, 31_000, 96_000]


@pytest.mark.settings(
    default_backoff_exponent=1.0, default_backoff_base=7, default_backoff_jitter=0
)
async def test_the_default_backoff_can_be_set(client: Client) -> None:
    assert await delays(client, 2) == [1_007, 2_007]


async def test_jitter_grows_with_the_attempts_and_stays_in_its_bound(client: Client) -> None:
    backoff = {"exponent": 0, "base_ms": 0, "jitter_ms": 1_000}
    job_ids = await client.enqueue_many(30, backoff=backoff)
    stream = await client.take(prefetch=0)
    for attempt in (1, 2):
        await stream.jobs(30)
        now = client.site.now
        found = [(await client.fail(job_id))["ready_at"] - now for job_id in job_ids]
        assert all(1_000 <= delay < 1_000 + 1_000 * attempt for delay in found)
        assert len(set(found)) > 10
        # The upper part of the range is used: 1 chance in 2**30 of a false alarm, and a fixed seed.
        assert max(found) > 1_000 + 500 * attempt
        client.site.clock.jump(3_000)


async def test_the_default_backoff_jitters_up_to_30_seconds_an_attempt(client: Client) -> None:
    job = await client.in_flight()
    failed = await client.fail(job["id"])
    assert 16_000 <= failed["ready_at"] - client.site.now < 46_000


async def test_a_huge_backoff_is_capped_and_not_an_error(client: Client) -> None:
    backoff = {"exponent": 1e30, "base_ms": 2**32 - 1, "jitter_ms": 2**32 - 1}
    job = await client.in_flight(backoff=backoff)
    await client.fail(job["id"], retry_at=0)
    await client.until(job["id"], status="in_flight")
    failed = await client.fail(job["id"])
    assert failed["status"] == "scheduled"
    assert failed["ready_at"] > client.site.now + 2**32 - 1


# Retention


@pytest.mark.settings(default_completed_job_retention=9_000, default_dead_job_retention=7_000)
async def test_retention_of_the_job_goes_before_that_of_the_server(client: Client) -> None:
    async def purge_after(status: str, retention: Doc) -> int | None:
        fields: Doc = {"retention": retention}
        job = await client.job(await client.make(status, **fields))
        purge_at: int = job["purge_at"]
        return purge_at - client.site.now

    assert await purge_after("completed", {}) == 9_000
    assert await purge_after("completed", {"completed_ms": 3_000}) == 3_000
    assert await purge_after("completed", {"dead_ms": 3_000}) == 9_000
    assert await purge_after("dead", {}) == 7_000
    assert await purge_after("dead", {"dead_ms": 3_000}) == 3_000


@pytest.mark.settings(default_completed_job_retention=9_000)
async def test_a_job_may_ask_for_no_retention(client: Client) -> None:
    job = await client.in_flight(retention={"completed_ms": 0})
    await client.succeed(job["id"])
    assert not await client.exists(job["id"])


async def test_dead_jobs_are_kept_for_seven_days(client: Client) -> None:
    job = await client.in_flight()
    await client.fail(job["id"], kill=True)
    client.site.clock.jump(7 * 24 * HOUR_MS - 1)
    assert (await client.job(job["id"]))["status"] == "dead"
    client.site.clock.jump(1)
    assert not await client.exists(job["id"])


@pytest.mark.settings(reaper_check_interval=HOUR_MS)
@pytest.mark.parametrize("status", ["completed", "dead"])
async def test_expired_jobs_are_hidden_at_once_though_not_yet_purged(
    client: Client, status: str
) -> None:
    await client.tire_the_reaper()
    expired = await client.make(status)
    kept = await client.make(status, queue="other", retention={"completed_ms": 2 * HOUR_MS})
    client.site.clock.jump(59_999)
    assert ids(await client.jobs()) == [expired, kept]
    client.site.clock.jump(1)
    assert not await client.exists(expired)
    assert ids(await client.jobs()) == [kept]
    assert ids(await client.jobs(id=f"{expired},{kept}")) == [kept]
    assert ids(await client.jobs(status=status)) == [kept]
    assert await client.count() == 1
    assert await client.count(queue="default") == 0
    assert await client.count(status=status) == 1
    assert (await client.get(f"/jobs/{expired}/errors")).status == 404


@pytest.mark.settings(reaper_check_interval=1_000)
async def test_purged_jobs_are_gone_for_good(client: Client) -> None:
    for status in ("completed", "dead"):
        await client.make(status)
    kept = await client.make("ready")
    client.site.clock.jump(61_000)
    await client.until_count(1)
    await client.site.restart()
    assert ids(await client.jobs()) == [kept]
    assert (await client.delete("/jobs")).doc == {"deleted": 1}


@pytest.mark.settings(reaper_check_interval=1_000)
async def test_a_purge_of_thousands_leaves_none_behind(client: Client) -> None:
    job_ids = await client.enqueue_many(2_500, retention={"completed_ms": 5_000})
    stream = await client.take(prefetch=0)
    await stream.jobs(2_500)
    await client.succeed(*job_ids)
    assert await client.count(status="completed") == 2_500
    client.site.clock.jump(10_000)
    await client.until_count(0)
    assert (await client.get("/queues")).doc == {"queues": []}


async def test_unfinished_jobs_are_never_purged(client: Client) -> None:
    for status in ("ready", "in_flight"):
        await client.make(status, queue=status)
    await client.enqueue(ready_at=client.site.now + 10 * 365 * 24 * HOUR_MS)
    client.site.clock.jump(365 * 24 * HOUR_MS)
    assert await client.count() == 3
