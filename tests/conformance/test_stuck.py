"""Jobs that run for much longer than their queue's usually do, and moments with a name."""

import asyncio

from zq.features.trends.model import HOUR_MS, MINUTE_MS
from zq.features.trends.service import MOST_MARKS

from .client import Client, Doc


async def stuck(client: Client) -> list[Doc]:
    found: list[Doc] = (await client.get("/stuck")).doc["jobs"]
    return found


async def test_a_job_is_stuck_once_it_runs_twice_as_long_as_its_queue_does(client: Client) -> None:
    streams = {
        queue: await client.take(queue=queue, headers={"worker-id": f"of-{queue}"})
        for queue in ("q", "new")
    }

    async def take(queue: str) -> str:
        """Have the worker of this queue take a job, and keep it."""
        await client.enqueue(queue=queue)
        id: str = (await streams[queue].job())["id"]
        return id

    usual = await take("q")
    client.site.clock.advance(MINUTE_MS)
    await client.succeed(usual)
    lost, new = await take("q"), await take("new")
    client.site.clock.advance(MINUTE_MS + 1)
    assert await stuck(client) == []
    client.site.clock.advance(2 * MINUTE_MS)
    # The minute with the usual run is stored by a tick of its own.
    async with asyncio.timeout(60):
        while not (found := await stuck(client)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    (one,) = found
    assert (one["id"], one["queue"], one["deliveries"], one["attempts"]) == (lost, "q", 1, 0)
    assert one["worker"] == "of-q"
    assert MINUTE_MS / 2 <= one["p99_ms"] <= 2 * MINUTE_MS
    client.site.clock.advance(HOUR_MS)
    assert [each["id"] for each in await stuck(client)] == [lost, new]
    assert "p99_ms" not in (await stuck(client))[1]
    await client.succeed(lost)
    assert [each["id"] for each in await stuck(client)] == [new]


async def test_a_moment_with_a_name_stands_in_the_history_over_restarts(client: Client) -> None:
    at = client.site.now
    reply = await client.post("/marks", {"text": "1.8.2"})
    assert (reply.status, reply.doc) == (201, {"at": at, "text": "1.8.2"})
    await client.site.restart()
    client.site.clock.advance(10 * MINUTE_MS)
    for over, marks in (("1h", [reply.doc]), ("5m", [])):
        assert (await client.get("/stats/history", range=over)).doc["marks"] == marks
    for n in range(MOST_MARKS):
        await client.post("/marks", {"text": str(n)})
    marks = (await client.get("/stats/history")).doc["marks"]
    assert [mark["text"] for mark in marks] == [str(n) for n in range(MOST_MARKS)]
    for text in ("", " ", "x" * 201):
        assert (await client.post("/marks", {"text": text})).status == 400
