"""What viewers are shown: the lists of jobs, each change of them, and the state of the server."""

import pytest
from conformance.client import Client
from conformance.site import Site

from .viewing import ADMIN, HEAD, Watcher, ids, watching

pytestmark = pytest.mark.settings(**ADMIN)


async def test_it_begins_with_the_first_jobs_of_each_list_in_their_order(
    site: Site, client: Client
) -> None:
    late = await client.make("scheduled", ready_at=site.now + 90_000)
    soon = await client.make("scheduled")
    (held,) = [await client.make("in_flight", queue="held")]
    second, third = await client.enqueue_many(2)
    first = (await client.enqueue(priority=1))["id"]

    async with watching(site) as watcher:
        snapshot = await watcher.hear()

    assert snapshot["event"] == "job_snapshot"
    assert ids(snapshot["ready"]) == [first, second, third]
    assert ids(snapshot["in_flight"]) == [held]
    assert set(ids(snapshot["scheduled"])) == {soon, late}
    server = snapshot["server"]
    totals = [server[f"total_{name}"] for name in ("ready", "in_flight", "scheduled")]
    assert totals == [snapshot[name]["total"] for name in ("ready", "in_flight", "scheduled")]
    assert (server["tier"], server["version"]) == ("pro", "0.7.0")
    assert "subscription_limit" not in server
    (shown,) = snapshot["in_flight"]["items"]
    assert set(shown) == {
        *("id", "queue", "job_type", "priority", "ready_at", "attempts", "dequeued_at")
    }


async def test_each_change_is_told_where_it_happens(watcher: Watcher, client: Client) -> None:
    id = (await client.enqueue())["id"]
    assert await watcher.changes(1) == [("ready", id)]

    stream = await client.take(prefetch=1)
    await stream.job()
    assert await watcher.changes(2) == [("ready_removed", id), ("in_flight", id)]

    await stream.close()
    assert await watcher.changes(2) == [("in_flight_removed", id), ("ready", id)]

    stream = await client.take(prefetch=1)
    await stream.job()
    await watcher.changes(2)
    await client.fail(id, retry_at=client.site.now + 3_600_000)
    assert await watcher.changes(3) == [
        *(("dead", id), ("in_flight_removed", id), ("scheduled", id))
    ]

    client.site.clock.advance(3_600_000)
    assert await watcher.changes(2) == [("scheduled_removed", id), ("in_flight", id)]

    await client.succeed(id)
    assert await watcher.changes(2) == [("completed", id), ("in_flight_removed", id)]


async def test_what_comes_and_goes_between_two_frames_is_not_told(
    watcher: Watcher, client: Client
) -> None:
    taken = await client.in_flight()
    await client.succeed(taken["id"])

    assert (await watcher.hear())["event"] == "heartbeat"


async def test_totals_are_told_where_no_window_shows_the_change(
    watcher: Watcher, client: Client
) -> None:
    first = (await client.enqueue())["id"]
    assert ids(await watcher.subscribe("ready", HEAD, 1)) == [first]
    await client.enqueue()

    heartbeat = await watcher.hear()
    while heartbeat["server"]["total_ready"] == 1:
        heartbeat = await watcher.hear()
    assert heartbeat["event"] == "heartbeat"


async def test_a_job_that_moves_up_into_the_window_enters_it(
    watcher: Watcher, client: Client
) -> None:
    jobs = await client.enqueue_many(3)
    assert ids(await watcher.subscribe("ready", HEAD, 2)) == jobs[:2]

    await client.delete(f"/jobs/{jobs[0]}")
    assert await watcher.changes(2) == [("ready_removed", jobs[0]), ("ready", jobs[2])]

    better = (await client.enqueue(priority=1))["id"]
    assert await watcher.changes(2) == [("ready_removed", jobs[2]), ("ready", better)]


async def test_a_patch_shows_the_windows_anew(watcher: Watcher, client: Client) -> None:
    id = (await client.enqueue())["id"]
    await watcher.changes(1)
    await client.change(id, retry_limit=3)

    snapshot = await watcher.hear_of("job_snapshot")
    assert ids(snapshot["ready"]) == [id]


async def test_many_changes_are_one_snapshot(watcher: Watcher, client: Client) -> None:
    jobs = await client.enqueue_many(100)

    event = await watcher.told()
    assert event["event"] == "job_snapshot"
    assert ids(event["ready"]) == jobs


async def test_silence_is_broken_by_a_heartbeat_every_two_seconds(watcher: Watcher) -> None:
    first = await watcher.hear()
    second = await watcher.hear()

    assert first["event"] == second["event"] == "heartbeat"
    passed = second["server"]["uptime_ms"] - first["server"]["uptime_ms"]
    assert 2_000 <= passed < 2_300


async def test_a_server_runs_since_its_start_whoever_looks_first(site: Site) -> None:
    site.clock.advance(3_600_000)
    async with watching(site) as watcher:
        assert (await watcher.hear())["server"]["uptime_ms"] >= 3_600_000


async def test_detail_shows_what_a_job_sets(watcher: Watcher, client: Client) -> None:
    await client.enqueue(
        payload={"a": 1}, retry_limit=2, unique_key="k", unique_while="active", retention={}
    )
    await watcher.changes(1)
    await watcher.say(type="set_detail_level", detail=True)

    (job,) = (await watcher.hear_of("job_snapshot"))["ready"]["items"]
    assert job["payload"] == {"a": 1}
    assert (job["retry_limit"], job["unique_key"], job["unique_while"]) == (2, "k", "active")
