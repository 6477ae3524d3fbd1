"""Looking ahead at a sweep: the count, and the id that keeps later jobs out of it."""

import asyncio
from typing import Any

import pytest

from zq.features.sweeps.service_running import Sweeps
from zq.model.reach import EVERYWHERE

from .client import Client, Doc
from .test_sweeps import cancel, until_shown


async def look(client: Client, **query: Any) -> Doc:
    reply = await client.get("/sweeps/preview", **query)
    assert reply.status == 200
    doc: Doc = reply.doc
    return doc


@pytest.mark.parametrize(
    ("verb", "method", "path", "status", "answer"),
    [
        ("cancel", "POST", "/jobs/cancel", "ready", {"cancelled": 2}),
        ("delete", "DELETE", "/jobs", "ready", {"deleted": 2}),
        ("patch", "PATCH", "/jobs", "ready", {"patched": 2}),
        ("requeue", "POST", "/jobs/requeue", "dead", {"requeued": 2}),
    ],
    ids=["cancel", "delete", "patch", "requeue"],
)
async def test_a_job_that_arrives_between_preview_and_run_is_left_alone(
    client: Client, verb: str, method: str, path: str, status: str, answer: Doc
) -> None:
    for _ in range(2):
        await client.make(status, queue="a")
    await client.make("completed" if verb != "delete" else status, queue="b")
    seen = await look(client, verb=verb, queue="a")
    assert (seen["count"], seen["exact"]) == (2, True)
    late = await client.make(status, queue="a")
    body = {"priority": 7} if verb == "patch" else None
    bound = f"{path}?queue=a&upto={seen['upto']}"
    changed = await (
        client.send(method, bound) if body is None else client.call(method, bound, body)
    )
    assert changed.doc == answer
    found = await client.job(late)
    assert (found["status"], found["priority"] == 7) == (status, False)
    # What came later is all that a second run without the id would find.
    assert (await look(client, verb=verb, queue="a"))["count"] == (3 if verb == "patch" else 1)


async def test_a_job_that_arrives_after_a_look_at_nothing_is_left_alone(client: Client) -> None:
    seen = await look(client)
    assert (seen["count"], seen["exact"]) == (0, True)
    await client.enqueue(queue="a")
    assert (await client.delete("/jobs", upto=seen["upto"])).doc == {"deleted": 0}
    assert await client.count(queue="a") == 1


async def test_a_preview_counts_what_the_verb_would_change(client: Client) -> None:
    for status in ("completed", "dead", "in_flight", "ready"):
        await client.make(status, queue="a")
    verbs = ("delete", "cancel", "requeue", "patch")
    counts = {verb: (await look(client, verb=verb, queue="a"))["count"] for verb in verbs}
    assert counts == {"delete": 4, "cancel": 1, "requeue": 1, "patch": 2}
    assert (await look(client, verb="cancel", force="true", queue="a"))["count"] == 2
    assert (await look(client, queue="a", filter="true"))["count"] == 4


async def test_a_preview_counts_no_more_than_it_has_read(client: Client) -> None:
    for many in (9_500, 1_000):
        await client.enqueue_many(many, queue="a", type="t")
    few = await look(client, queue="a", status="ready")
    assert (few["count"], few["exact"]) == (10_500, True)
    await client.enqueue_many(1_000, queue="a", type="t")
    # The counts of queues are kept; those of types are not.
    by_queue = await look(client, queue="a", status="ready")
    assert (by_queue["count"], by_queue["exact"]) == (11_500, True)
    by_type = await look(client, type="t")
    assert (by_type["count"], by_type["exact"]) == (11_000, False)


async def test_a_sweep_stopped_while_it_runs_goes_on_without_the_jobs_that_came_later(
    client: Client,
) -> None:
    await client.enqueue_many(3_000, queue="a")
    upto = (await look(client, verb="cancel", queue="a"))["upto"]
    late = await client.enqueue(queue="a")
    bound = f"a&upto={upto}"
    with client.site.busy():
        first = cancel(client, bound)
        (sweep,) = await until_shown(client, len)
        assert sweep["by"] == {"queue": ["a"], "status": ["scheduled", "ready"], "upto": upto}
        stop = asyncio.create_task(client.send("DELETE", f"/sweeps/{sweep['id']}"))
        running = client.site.server.services[Sweeps].running
        await until_shown(client, lambda _: all(s.is_stopped for s in running(EVERYWHERE)))
    assert (await stop).status == 204
    stopped = (await first).doc["cancelled"]
    assert stopped in (0, 1_000)
    assert (await cancel(client, bound)).doc == {"cancelled": 3_000 - stopped}
    assert (await client.job(late["id"]))["status"] == "ready"


async def test_sweeps_with_different_ends_are_not_shared(client: Client) -> None:
    await client.enqueue(queue="a")
    early = (await look(client))["upto"]
    await client.enqueue(queue="a")
    with client.site.busy():
        sent = [cancel(client, "a"), cancel(client, f"a&upto={early}")]
        await until_shown(client, lambda sweeps: len(sweeps) == 2)
    changed = [reply.doc["cancelled"] for reply in await asyncio.gather(*sent)]
    assert sum(changed) == 2


@pytest.mark.parametrize("text", ["", "x", "01JD0000000000000000000000"])
async def test_an_end_that_is_no_id_of_this_server_is_refused(client: Client, text: str) -> None:
    await client.enqueue(queue="a")
    refused = await client.send("POST", f"/jobs/cancel?queue=a&upto={text}")
    assert (refused.status, "upto" in refused.error) == (400, True)
    assert await client.count(queue="a", status="ready") == 1


async def test_a_preview_of_what_cannot_be_changed_is_refused(client: Client) -> None:
    assert (await client.get("/sweeps/preview", verb="cancel", status="dead")).status == 422
    assert (await client.get("/sweeps/preview", verb="burn")).status == 400


async def test_a_page_of_jobs_up_to_an_id_links_to_the_next_with_that_id(client: Client) -> None:
    await client.enqueue_many(3, queue="a")
    upto = (await look(client))["upto"]
    await client.enqueue(queue="a")
    first = (await client.get("/jobs", queue="a", upto=upto, limit=2)).doc
    assert len(first["jobs"]) == 2
    rest = (await client.send("GET", first["pages"]["next"])).doc
    assert len(rest["jobs"]) == 1
    assert rest["pages"]["next"] is None
