"""Requeuing dead jobs by the one name that all doors use, and by the older names."""

from .client import Client
from .test_dead_letter import die


async def test_dead_jobs_are_requeued_one_by_one_and_by_a_filter(client: Client) -> None:
    for one, many, counted in (
        ("requeue", "requeue", "requeued"),
        ("retry", "redrive", "redriven"),
    ):
        first, _ = await die(client, 2)
        reply = await client.send("POST", f"/jobs/{first}/{one}")
        assert (reply.status, reply.doc["status"]) == (200, "ready")
        assert (await client.send("POST", f"/jobs/{many}?queue=q")).doc == {counted: 1}
        assert (await client.get("/jobs/count", status="dead")).doc == {"count": 0}
        await client.delete("/jobs", queue="q")


async def test_a_preview_knows_the_older_name(client: Client) -> None:
    await die(client)
    for verb in ("requeue", "redrive"):
        reply = await client.send("GET", f"/sweeps/preview?verb={verb}")
        assert reply.doc["count"] == 1
