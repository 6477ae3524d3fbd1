"""Durations run on elapsed time, and dates on the wall clock, however that is set meanwhile.

Each kind of duration is an hour long here. The clock is set 6 hours forward, as a device without a
battery does that starts behind, or an hour back: while the server runs, while it is stopped, or
just before it is stopped or killed.
"""

import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conformance.claims import claim, claim_one, set_queue
from conformance.client import JSON, Client, new_job
from conformance.site import Site
from conformance.test_budgets import put as put_budget
from conformance.test_undo import cancelled as cancel_all
from conformance.test_undo import undo
from manual_clock import ManualClock
from rooms import of_room

from zq.store.sqlite.migrate import migrate

HOUR_MS = 3_600_000
SLACK_MS = 5_000

pytestmark = pytest.mark.settings(history=HOUR_MS, device="lab-1")

IsOver = Callable[[Client], Awaitable[bool]]


class Kind(NamedTuple):
    """A kind of duration: what begins one of an hour, and how to see whether it is over."""

    begin: Callable[[Client], Awaitable[Any]]
    is_over: Callable[[Client, Any], Awaitable[bool]]


def has_status(status: str) -> Callable[[Client, str], Awaitable[bool]]:
    async def is_over(client: Client, id: str) -> bool:
        return bool((await client.job(id))["status"] == status)

    return is_over


async def is_gone(client: Client, id: str) -> bool:
    return not await client.exists(id)


async def back_off(client: Client) -> str:
    backoff = {"exponent": 0, "base_ms": HOUR_MS - 1_000, "jitter_ms": 0}
    job = await client.enqueue(backoff=backoff)
    await claim_one(client)
    failed = await client.fail(job["id"])
    assert failed["ready_at"] == client.site.now + HOUR_MS
    return str(job["id"])


async def release(client: Client) -> str:
    job = await client.enqueue()
    await claim_one(client)
    reply = await client.post(f"/jobs/{job['id']}/release", {"delay_ms": HOUR_MS})
    assert reply.status == 204, reply.doc
    return str(job["id"])


async def lease(client: Client) -> str:
    job = await client.enqueue()
    taken = await claim_one(client, lease_ms=HOUR_MS)
    assert taken["lease_until"] == client.site.now + HOUR_MS
    return str(job["id"])


async def life(client: Client) -> str:
    job = await client.enqueue(ttl_ms=HOUR_MS)
    assert job["expires_at"] == client.site.now + HOUR_MS
    return str(job["id"])


async def life_by_queue(client: Client) -> str:
    await set_queue(client, "short", ttl_ms=HOUR_MS)
    return str((await client.enqueue(queue="short"))["id"])


async def result(client: Client) -> str:
    job = await client.enqueue(retention={"completed_ms": HOUR_MS})
    await claim_one(client)
    reply = await client.post(f"/jobs/{job['id']}/success", {"result": 1})
    assert reply.status == 204, reply.doc
    assert (await client.job(job["id"]))["purge_at"] == client.site.now + HOUR_MS
    return str(job["id"])


async def grave(client: Client) -> str:
    job = await client.enqueue(retention={"dead_ms": HOUR_MS})
    await claim_one(client)
    await client.fail(job["id"], kill=True)
    return str(job["id"])


async def cancelled(client: Client) -> str:
    job = await client.enqueue(retention={"dead_ms": HOUR_MS})
    assert (await client.post(f"/jobs/{job['id']}/cancel", {})).status == 200
    return str(job["id"])


async def window(client: Client) -> str:
    return str((await client.enqueue(dedupe={"id": "n", "window_ms": HOUR_MS}))["id"])


async def is_unknown(client: Client, first: str) -> bool:
    copy = await client.post("/jobs", {"queue": "default", "type": "t", "payload": 1,
        "dedupe": {"id": "n", "window_ms": HOUR_MS}})  # fmt: skip
    assert (copy.doc["id"] == first) == copy.doc["duplicate"]
    return not copy.doc["duplicate"]


async def budget(client: Client) -> str:
    strategy = {"type": "time_based", "duration_ms": HOUR_MS}
    await put_budget(client, "b", 1, strategy)
    ids = await client.enqueue_many(2, budgets=[{"key": "b", "cost": 1}])
    assert [job["id"] for job in await claim(client, max=2)] == ids[:1]
    await client.succeed(ids[0])
    return ids[1]


async def rate(client: Client) -> str:
    await set_queue(client, rate=1000 / HOUR_MS)
    ids = await client.enqueue_many(2)
    assert [job["id"] for job in await claim(client, max=2)] == ids[:1]
    await client.succeed(ids[0])
    return ids[1]


async def can_be_claimed(client: Client, id: str) -> bool:
    return id in [job["id"] for job in await claim(client, max=2)]


async def past(client: Client) -> None:
    job = await client.enqueue()
    await claim_one(client)
    await client.succeed(job["id"])


async def is_forgotten(client: Client, _: Any) -> bool:
    reply = await client.get("/history")
    return not reply.doc["records"]


KINDS = {
    "back-off": Kind(back_off, has_status("ready")),
    "release": Kind(release, has_status("ready")),
    "lease": Kind(lease, has_status("ready")),
    "ttl of a job": Kind(life, has_status("expired")),
    "ttl of a queue": Kind(life_by_queue, has_status("expired")),
    "result": Kind(result, is_gone),
    "dead job": Kind(grave, is_gone),
    "cancelled job": Kind(cancelled, is_gone),
    "dedupe window": Kind(window, is_unknown),
    "budget": Kind(budget, can_be_claimed),
    "rate": Kind(rate, can_be_claimed),
    "history": Kind(past, is_forgotten),
}
for _room in of_room("doors.topics", "durations"):
    KINDS |= {name: Kind(*both) for name, both in _room.DURATIONS.items()}

STEPS = (6 * HOUR_MS, -HOUR_MS)

either_way = pytest.mark.parametrize("step", STEPS)


async def running(site: Site, step: int) -> None:
    site.clock.step(step)


async def restarted(site: Site, step: int) -> None:
    site.clock.step(step)
    await site.restart()


async def killed(site: Site, step: int) -> None:
    site.clock.step(step)
    await site.crash()


async def stopped(site: Site, step: int) -> None:
    await site.stop()
    site.clock.step(step)
    await site.start()


WAYS = [running, restarted, killed, stopped]


async def settle(client: Client) -> None:
    """Let the server attend to what is due."""
    for _ in range(3):
        await client.enqueue(queue="elsewhere")


async def lasts_an_hour(site: Site, client: Client, kind: Kind, begun: Any) -> None:
    """Assert that a duration that has just begun is over after an hour, and not before."""
    site.clock.advance(HOUR_MS - SLACK_MS)
    await settle(client)
    assert not await kind.is_over(client, begun)
    site.clock.advance(2 * SLACK_MS)
    await settle(client)
    assert await kind.is_over(client, begun)


def met() -> Iterator[Any]:
    """Each kind with two ways in turn, one by each step; with all by both in the long tier."""
    for (kind, name), (number, way) in product(enumerate(KINDS), enumerate(WAYS)):
        for which, step in enumerate(STEPS):
            marks = () if (number - kind) % len(WAYS) == which else pytest.mark.long
            yield pytest.param(name, way, step, marks=marks)


@pytest.mark.parametrize(("name", "way", "step"), [*met()])
async def test_a_duration_lasts_as_long_as_it_was_to_last(
    site: Site, name: str, way: Callable[[Site, int], Awaitable[None]], step: int
) -> None:
    kind = KINDS[name]
    async with Client(site, JSON) as client:
        begun = await kind.begin(client)
    await way(site, step)
    async with Client(site, JSON) as client:
        await lasts_an_hour(site, client, kind, begun)


@pytest.mark.parametrize(("number", "name"), [*enumerate(KINDS)], ids=[*KINDS])
async def test_a_duration_that_begins_after_a_step_lasts_as_long(
    site: Site, number: int, name: str
) -> None:
    kind = KINDS[name]
    async with Client(site, JSON) as client:
        site.clock.step(STEPS[number % len(STEPS)])
        await settle(client)
        begun = await kind.begin(client)
        await lasts_an_hour(site, client, kind, begun)


@either_way
async def test_deadlines_are_shown_as_dates_of_the_clock_as_it_is_now(
    site: Site, step: int
) -> None:
    async with Client(site, JSON) as client:
        shown = {
            "ready_at": await back_off(client),
            "expires_at": await life(client),
            "purge_at": await grave_behind(client),
        }
        leased = await lease_of(client)
        site.clock.step(step)
        then = site.now + HOUR_MS
        for field, id in shown.items():
            assert (await client.job(id))[field] == then, field
        assert (await client.job(leased))["lease_until"] == then
        (listed,) = await client.jobs(status="scheduled")
        assert listed["ready_at"] == then
        patched = await client.change(shown["ready_at"], priority=7)
        assert patched["ready_at"] == then
        reply = await client.get("/scheduled")
        assert [job["ready_at"] for job in reply.doc["jobs"]] == [then]
        site.clock.advance(HOUR_MS)
        # The date at which it became ready is a fact, and another step changes it no more.
        await client.until(shown["ready_at"], status="ready", ready_at=then)
        site.clock.step(-step)
        assert (await client.job(shown["ready_at"]))["ready_at"] == then


async def grave_behind(client: Client) -> str:
    job = await client.enqueue(queue="dying", retention={"dead_ms": HOUR_MS})
    await claim_one(client, queue="dying")
    await client.fail(job["id"], kill=True)
    return str(job["id"])


async def lease_of(client: Client) -> str:
    job = await client.enqueue(queue="leased")
    await claim_one(client, queue="leased", lease_ms=HOUR_MS)
    return str(job["id"])


async def test_a_job_that_waits_for_a_date_lives_from_that_date_on(site: Site) -> None:
    async with Client(site, JSON) as client:
        date = site.now + 8 * HOUR_MS
        job = await client.enqueue(ready_at=date, ttl_ms=HOUR_MS)
        moved = await client.enqueue(ready_at=date, ttl_ms=HOUR_MS)
        assert job["expires_at"] == date + HOUR_MS
        site.clock.step(6 * HOUR_MS)
        await site.crash()
    async with Client(site, JSON) as client:
        assert (await client.job(job["id"]))["expires_at"] == date + HOUR_MS
        now = await client.change(moved["id"], ready_at=None)
        assert (now["status"], now["expires_at"]) == ("ready", site.now + HOUR_MS)
        site.clock.advance(2 * HOUR_MS)
        await client.until(job["id"], status="ready", expires_at=date + HOUR_MS)
        assert (await client.job(moved["id"]))["status"] == "expired"
        site.clock.step(-HOUR_MS)
        site.clock.advance(HOUR_MS - SLACK_MS)
        await settle(client)
        assert (await client.job(job["id"]))["status"] == "ready"
        site.clock.advance(2 * SLACK_MS)
        await client.until(job["id"], status="expired")


@either_way
async def test_dates_follow_the_clock(site: Site, step: int) -> None:
    later = 8 * HOUR_MS
    async with Client(site, JSON) as client:
        given = await client.enqueue(ready_at=site.now + later)
        retried = await client.enqueue(queue="retried")
        await claim_one(client, queue="retried")
        await client.fail(retried["id"], retry_at=site.now + later)
        patched = await client.enqueue(ready_at=site.now + 1)
        await client.change(patched["id"], ready_at=site.now + later)
        await set_queue(client, "paused", paused=True, paused_until=site.now + later)
        entry = {"name": "e", "expression": "@hourly", "job": new_job(queue="cron")}
        reply = await client.call("PUT", "/crons/g", {"entries": [entry]})
        assert reply.status == 200, reply.doc
        site.clock.step(step)
        fired = await client.count(queue="cron")
        site.clock.advance(later - step - SLACK_MS)
        await settle(client)
        for job in (given, retried, patched):
            assert (await client.job(job["id"]))["status"] == "scheduled"
        assert (await client.get("/queues/paused/settings")).doc["paused"]
        site.clock.advance(2 * SLACK_MS)
        for job in (given, retried, patched):
            await client.until(job["id"], status="ready")
        await client.until_count(fired + 1, queue="cron")
        await settle(client)
        assert not (await client.get("/queues/paused/settings")).doc.get("paused")


@either_way
@pytest.mark.parametrize("name", ["back-off", "release"])
async def test_a_cancelled_job_goes_on_waiting_for_what_is_left(
    site: Site, name: str, step: int
) -> None:
    async with Client(site, JSON) as client:
        waiting = await KINDS[name].begin(client)
        ready = (await client.enqueue(queue="ready"))["id"]
        sweep = await cancel_all(client, f"id={waiting},{ready}")
        site.clock.advance(2_000)
        site.clock.step(step)
        assert (await undo(client, sweep)).doc["undone"] == 2
        assert (await client.job(ready))["status"] == "ready"
        site.clock.advance(HOUR_MS - 2_000 - SLACK_MS)
        await settle(client)
        assert (await client.job(waiting))["status"] == "scheduled"
        site.clock.advance(2 * SLACK_MS)
        await client.until(waiting, status="ready")


async def test_a_device_that_boots_behind_and_is_corrected_loses_no_time(site: Site) -> None:
    async with Client(site, JSON) as client:
        waiting, short = await back_off(client), await life(client)
        site.clock.advance(2_000)
    await site.stop()
    site.clock.reboot()
    site.clock.step(-6 * HOUR_MS)
    await site.start()
    async with Client(site, JSON) as client:
        site.clock.advance(2_000)
        site.clock.step(6 * HOUR_MS)
        site.clock.advance(HOUR_MS - 4_000 - SLACK_MS)
        await settle(client)
        assert (await client.job(waiting))["status"] == "scheduled"
        assert (await client.job(short))["status"] == "ready"
        site.clock.advance(2 * SLACK_MS)
        await client.until(waiting, status="ready")
        await client.until(short, status="expired")


async def test_a_step_is_said_with_what_became_due_by_it(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with Client(site, JSON) as client:
        listening = await client.listen(types="clock_set")
        await client.enqueue_many(1_203, ready_at=site.now + HOUR_MS)
        await client.enqueue(ready_at=site.now + 7 * HOUR_MS)
        await set_queue(client, "paused", paused=True, paused_until=site.now + HOUR_MS)
        assert "clock_set" not in (await client.get("/health")).doc
        site.clock.step(30_000)  # nobody is told of that
        site.clock.step(6 * HOUR_MS)
        await client.until_count(1_203, status="ready")
        told = {"by_ms": 6 * HOUR_MS + 30_000, "due_jobs": 1_203, "due_schedules": 0}
        told["due_pauses"] = 1
        health = (await client.get("/health")).doc["clock_set"]
        assert health == {"at": site.now, **told}
        assert "1,203 scheduled jobs" in caplog.text
        event = await listening.event()
        assert event["data"] == told
        assert "id" not in event
        text = (await client.get("/metrics")).body.decode()
        assert "zq_clock_steps_total 1.0" in text
        site.clock.step(-HOUR_MS)
        await settle(client)
        health = (await client.get("/health")).doc["clock_set"]
        assert (health["by_ms"], health["due_jobs"]) == (-HOUR_MS, 0)


@pytest.mark.parametrize("step", [30_000, -30_000])
async def test_a_small_step_is_not_told_and_durations_do_not_notice(site: Site, step: int) -> None:
    async with Client(site, JSON) as client:
        waiting = await back_off(client)
        site.clock.step(step)
        site.clock.advance(HOUR_MS - 1)
        await settle(client)
        assert (await client.job(waiting))["status"] == "scheduled"
        site.clock.advance(1_001)
        await client.until(waiting, status="ready")
        assert "clock_set" not in (await client.get("/health")).doc


async def test_deadlines_of_an_older_version_stay_where_they_were(site: Site) -> None:
    await site.stop()
    (site.root / "zq.db").unlink()
    then = site.now + HOUR_MS
    with closing(sqlite3.connect(site.root / "zq.db", isolation_level=None)) as connection:
        migrate(connection, 23)
        for key, (status, ready_at, expires_at) in enumerate(
            [(0, then, None), (1, site.now, then), (0, then, then + HOUR_MS)], 1
        ):
            connection.execute(
                "INSERT INTO jobs (id, queue, type, priority, status, ready_at, expires_at,"
                " payload_size, payload) VALUES (?, 'q', 't', 1, ?, ?, ?, 1, '1')",
                [key << 20, status, ready_at, expires_at],
            )
            connection.execute(
                "INSERT INTO queue_counts VALUES ('q', ?, 1) ON CONFLICT DO UPDATE SET n = n + 1",
                [status],
            )
    await site.start()
    async with Client(site, JSON) as client:
        first, second, third = [job["id"] for job in await client.jobs(order="asc")]
        site.clock.advance(HOUR_MS - 1)
        await settle(client)
        assert (await client.job(first))["status"] == "scheduled"
        assert (await client.job(second))["status"] == "ready"
        site.clock.advance(1_000)
        await client.until(first, status="ready")
        await client.until(second, status="expired")
        await client.until(third, status="ready", expires_at=then + HOUR_MS)


@either_way
async def test_a_copy_on_another_machine_goes_on_by_its_clock(
    site: Site, tmp_path: Path, step: int
) -> None:
    async with Client(site, JSON) as client:
        site.clock.step(step)
        waiting = await back_off(client)
    await site.stop()
    other = Site(tmp_path / "other", {})
    shutil.copytree(site.root, other.root)
    # The other machine has another boot. Its clock shows a minute more.
    other.clock = ManualClock(site.now + 60_000)
    await other.start()
    try:
        async with Client(other, JSON) as client:
            other.clock.advance(HOUR_MS - 60_000 - SLACK_MS)
            await settle(client)
            assert (await client.job(waiting))["status"] == "scheduled"
            other.clock.advance(2 * SLACK_MS)
            await client.until(waiting, status="ready")
    finally:
        await other.stop()
