"""Failures by their causes: counted by the tick, found again by filters of jobs."""

import sqlite3
from contextlib import closing

from zq.model.failures import HOUR_MS, KEPT_MS, MOST_GROUPS, cause_of

from .client import Client, Doc, ids

KEEP = {"retention": {"dead_ms": 60_000}}


async def groups(client: Client, **params: object) -> list[Doc]:
    reply = await client.get("/error-groups", **params)
    assert reply.status == 200, reply.doc
    assert reply.doc["rule"] == 1
    found: list[Doc] = reply.doc["groups"]
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
    assert await groups(client) == []
    start = client.site.now
    one = await failed(client, "421 for 'ann'", error_type="Smtp")
    client.site.clock.advance(5)
    other = await failed(client, "450 for 'bob'", queue="r", error_type="Smtp")
    (group,) = await groups(client)
    rows = group.pop("queues")
    assert group == {
        "signature": cause_of("Smtp", "421 for 'ann'").signature,
        "error_type": "Smtp",
        "message": "<n> for <text>",
        "count": 2,
        "this_hour": 2,
        "hour_before": 0,
        "first_seen": start,
        "last_seen": start + 5,
        "sample": other,
    }
    assert [(row["queue"], row["count"], row["sample"]) for row in rows] == [
        *(("r", 1, other), ("q", 1, one)),
    ]
    (only,) = await groups(client, queue="q")
    assert (only["count"], only["sample"], only["last_seen"]) == (1, one, start)
    assert await groups(client, queue="none") == []


async def test_a_group_tells_how_often_it_came_in_this_hour_and_the_one_before(
    client: Client,
) -> None:
    async def lately() -> tuple[int, int]:
        (group,) = await groups(client)
        return group["this_hour"], group["hour_before"]

    await failed(client, "a 1")
    await failed(client, "a 2", queue="r")
    assert await lately() == (2, 0)
    client.site.clock.advance(HOUR_MS)
    assert await lately() == (0, 2)
    await failed(client, "a 3")
    assert await lately() == (1, 2)
    await client.site.restart()
    client.site.clock.advance(2 * HOUR_MS)
    assert await lately() == (0, 0)
    await failed(client, "a 4")
    assert await lately() == (1, 0)


async def test_the_latest_group_comes_first_and_restarts_forget_none(client: Client) -> None:
    await failed(client, "a")
    client.site.clock.advance(1)
    await failed(client, "b")
    assert [group["message"] for group in await groups(client)] == ["b", "a"]
    assert all("error_type" not in group for group in await groups(client))
    await client.site.restart()
    client.site.clock.advance(1)
    await failed(client, "a", queue="s")
    assert [(group["message"], group["count"]) for group in await groups(client)] == [
        *(("a", 2), ("b", 1)),
    ]


async def test_jobs_are_found_and_revived_by_the_group_of_their_latest_failure(
    client: Client,
) -> None:
    lost = [await failed(client, f"lost {n}") for n in range(2)]
    other = await failed(client, "other")
    by_message = {group["message"]: group["signature"] for group in await groups(client)}
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
    assert [group["count"] for group in await groups(client) if group["signature"] == cause] == [2]


async def test_an_empty_error_is_no_filter_of_a_change(client: Client) -> None:
    await failed(client, "a")
    assert (await client.send("POST", "/jobs/redrive?error=")).status == 400
    assert await client.count(error="") == 1


async def test_groups_are_bounded_and_the_rest_is_counted_together(client: Client) -> None:
    await failed(client, "known")
    site = client.site
    await site.stop()
    old = [("1-old", f"q{n}", site.now) for n in range(MOST_GROUPS - 1)]
    with closing(sqlite3.connect(site.root / "zq.db")) as db, db:
        insert = "INSERT INTO error_groups VALUES (?1, ?2, NULL, 'm', 1, ?3, ?3, 1, 0, 0, 0)"
        db.executemany(insert, old)
    await site.start()
    for message in ("new one", "new other", "known"):
        await failed(client, message)
    found = {group["message"]: group for group in await groups(client)}
    assert found.keys() == {"known", "m", "other"}
    assert (found["known"]["count"], found["other"]["count"]) == (2, 2)
    assert [row["queue"] for row in found["other"]["queues"]] == ["*"]
    # Groups that nobody has seen for a week make room.
    site.clock.advance(KEPT_MS + 1)
    await failed(client, "new one")
    assert "new one" in {group["message"] for group in await groups(client)}


async def test_a_reset_forgets_all_groups(client: Client) -> None:
    await failed(client, "a")
    assert (await client.send("POST", "/reset")).status == 204
    assert await groups(client) == []
