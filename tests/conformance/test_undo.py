"""Undoing a cancellation by filter: the jobs that it has cancelled come back, and no others."""

from pathlib import Path
from typing import Any

import pytest

from .client import Client, Doc, Reply, Wire
from .keyed import client_of, write_keys
from .site import Site
from .test_dead_letter import slow_sweep
from .test_settings import put
from .test_sweeps import cancel, until_shown

KEPT = {"retention": {"dead_ms": 60_000}}


async def cancelled(client: Client, query: str, **body: Any) -> Doc:
    """The sweep that has just cancelled what the query says."""
    assert (await client.call("POST", f"/jobs/cancel?{query}", body)).status == 200
    (sweep,) = (await client.get("/sweeps/ended", limit=1)).doc["sweeps"]
    found: Doc = sweep
    return found


async def undo(client: Client, sweep: Doc) -> Reply:
    return await client.send("POST", f"/sweeps/{sweep['id']}/undo")


async def test_exactly_the_jobs_of_the_sweep_come_back_after_a_crash(client: Client) -> None:
    by_hand = await client.make("cancelled", queue="a")
    ready = await client.enqueue(queue="a", priority=7, payload={"n": 1}, **KEPT)
    before = await client.job(ready["id"])
    later = await client.make("scheduled", queue="a")
    failed = await client.in_flight(queue="b", **KEPT)
    await client.fail(failed["id"], retry_at=client.site.now + 5)
    sweep = await cancelled(client, "queue=a,b&reason=wrong+list")
    assert (sweep["verb"], sweep["state"], sweep["changed"]) == ("cancel", "done", 3)
    assert (sweep["reason"], sweep["undone"]) == ("wrong list", 0)
    too_late = await client.enqueue(queue="a", **KEPT)
    second = await cancelled(client, "queue=a")
    await client.site.crash()
    assert (await client.get(f"/sweeps/{sweep['id']}")).doc["left"] == 3
    assert (await undo(client, sweep)).doc == {"undone": 3, "kept": {}, "gone": 0}
    assert await client.job(ready["id"]) == before
    assert (await client.job(later))["status"] == "scheduled"
    back = await client.job(failed["id"])
    assert (back["status"], back["attempts"]) == ("scheduled", 1)
    for untouched in (by_hand, too_late["id"]):
        assert (await client.job(untouched))["status"] == "cancelled"
    assert (await client.get(f"/sweeps/{sweep['id']}")).doc["undone"] == 3
    assert (await undo(client, second)).doc["undone"] == 1
    assert int(second["id"]) > int(sweep["id"])


async def test_jobs_come_back_to_their_places(client: Client) -> None:
    jobs = [await client.enqueue(queue="a", **KEPT) for _ in range(3)]
    sweep = await cancelled(client, f"id={jobs[0]['id']},{jobs[1]['id']}")
    await client.enqueue(queue="a", priority=1)
    await undo(client, sweep)
    stream = await client.take(prefetch=4, queue="a")
    taken = [(await stream.job())["id"] for _ in range(4)]
    assert taken[1:] == [job["id"] for job in jobs]


@pytest.mark.parametrize("targets", [["a", "b"], ["b", "a"]], ids=["first", "second"])
async def test_jobs_come_back_to_a_queue_among_its_own_targets_alone(
    client: Client, targets: list[str]
) -> None:
    await put(client, "a", fan_out=targets)
    await client.enqueue(queue="a", **KEPT)
    (job,) = await client.jobs(queue="a")
    sweep = await cancelled(client, f"id={job['id']}")
    assert (await undo(client, sweep)).doc["undone"] == 1
    assert [each["id"] for each in await client.jobs(queue="a")] == [job["id"]]
    assert await client.count(queue="b") == 1


async def test_a_group_goes_on_with_the_job_that_has_come_back(client: Client) -> None:
    first = await client.enqueue(queue="a", group="g", **KEPT)
    second = await client.enqueue(queue="a", group="g")
    sweep = await cancelled(client, f"id={first['id']}")
    assert (await undo(client, sweep)).doc["undone"] == 1
    stream = await client.take(prefetch=2, queue="a")
    assert (await stream.job())["id"] == first["id"]
    await client.succeed(first["id"])
    assert (await stream.job())["id"] == second["id"]


async def test_a_job_whose_unique_key_was_taken_meanwhile_stays_cancelled(client: Client) -> None:
    jobs = [await client.enqueue(unique_key=key, **KEPT) for key in ("k", "free")]
    sweep = await cancelled(client, "queue=default")
    taker = await client.enqueue(unique_key="k")
    assert (await undo(client, sweep)).doc == {"undone": 1, "kept": {"key_taken": 1}, "gone": 0}
    assert (await client.job(jobs[0]["id"]))["status"] == "cancelled"
    # The other one owns its key again, as before.
    copy = await client.post("/jobs", {**taker_body(), "unique_key": "free"})
    assert (copy.status, copy.doc["id"]) == (200, jobs[1]["id"])
    # Once the taker is gone, another undo takes the rest back.
    assert (await client.delete(f"/jobs/{taker['id']}")).status == 204
    assert (await undo(client, sweep)).doc == {"undone": 1, "kept": {}, "gone": 0}


def taker_body() -> Doc:
    return {"queue": "default", "type": "t", "payload": None}


async def test_two_cancelled_jobs_of_one_key_do_not_both_come_back(client: Client) -> None:
    first = await client.enqueue(unique_key="k", **KEPT)
    await cancelled(client, "queue=default")
    second = await client.enqueue(unique_key="k", **KEPT)
    sweep = await cancelled(client, "queue=default")
    (earlier,) = (await client.get("/sweeps/ended", before=sweep["id"])).doc["sweeps"]
    assert (await undo(client, earlier)).doc["undone"] == 1
    assert (await undo(client, sweep)).doc == {"undone": 0, "kept": {"key_taken": 1}, "gone": 0}
    assert (await client.job(first["id"]))["status"] == "ready"
    assert (await client.job(second["id"]))["status"] == "cancelled"


async def test_a_job_in_flight_that_was_cancelled_by_force_is_ready_again(client: Client) -> None:
    job = await client.enqueue(queue="a", **KEPT)
    holder = await client.take(prefetch=1, queue="a")
    lease = (await holder.job())["lease"]
    sweep = await cancelled(client, "queue=a", force=True)
    await holder.close()
    assert (await undo(client, sweep)).doc["undone"] == 1
    stale = await client.post(f"/jobs/{job['id']}/success", {"lease": lease})
    assert (stale.status, stale.headers["zq-error"]) == (409, "stale_lease")
    stream = await client.take(prefetch=1, queue="a")
    assert (await stream.job())["lease"] == lease + 1


async def test_what_is_over_or_gone_is_counted(client: Client) -> None:
    await client.enqueue(queue="a", ttl_ms=10, **KEPT)
    deleted = await client.enqueue(queue="a", **KEPT)
    await client.enqueue(queue="a", retention={"dead_ms": 0})
    back = await client.enqueue(queue="a", **KEPT)
    sweep = await cancelled(client, "queue=a")
    await client.delete(f"/jobs/{deleted['id']}")
    client.site.clock.advance(10)
    assert (await undo(client, sweep)).doc == {"undone": 1, "kept": {"expired": 1}, "gone": 2}
    assert (await client.job(back["id"]))["status"] == "ready"


async def test_an_undo_after_the_retention_says_what_has_become_of_the_jobs(client: Client) -> None:
    await client.enqueue(queue="a", **KEPT)
    sweep = await cancelled(client, "queue=a")
    client.site.clock.advance(60_000)
    late = await undo(client, sweep)
    assert (late.status, late.headers["zq-error"]) == (409, "nothing_to_undo")
    assert "no longer retained: enqueue them again" in late.error
    assert await client.count(status="ready") == 0


async def test_only_a_cancellation_can_be_undone(client: Client) -> None:
    await client.enqueue(queue="a")
    await client.delete("/jobs", queue="a")
    (sweep,) = (await client.get("/sweeps/ended")).doc["sweeps"]
    refused = await undo(client, sweep)
    assert (refused.status, refused.headers["zq-error"]) == (409, "nothing_to_undo")
    assert "`delete`" in refused.error
    for unknown in ("99", "x", "0"):
        missing = await client.send("POST", f"/sweeps/{unknown}/undo")
        assert (missing.status, missing.headers["zq-error"]) == (404, "sweep_not_found")


async def test_a_cancellation_that_runs_has_to_be_stopped_before_its_undo(client: Client) -> None:
    await client.enqueue(queue="a", **KEPT)
    with client.site.busy():
        sent = cancel(client, "a")
        (sweep,) = await until_shown(client, len)
        refused = await undo(client, sweep)
        assert refused.status == 409
        assert "stop it first" in refused.error
    await sent


async def test_what_a_stopped_cancellation_has_changed_comes_back(client: Client) -> None:
    request, sweep = await slow_sweep(client)
    await client.delete(f"/sweeps/{sweep['id']}")
    changed = (await request).doc["cancelled"]
    stopped = (await client.get(f"/sweeps/{sweep['id']}")).doc
    assert (stopped["state"], stopped["changed"], stopped["left"]) == ("stopped", changed, changed)
    assert 0 < stopped["progress"] < 1
    assert (await undo(client, sweep)).doc == {"undone": changed, "kept": {}, "gone": 0}
    assert await client.count(status="ready") == 10_000


async def test_a_sweep_says_how_many_its_preview_has_counted(client: Client) -> None:
    await client.enqueue_many(3, queue="a", **KEPT)
    seen = (await client.get("/sweeps/preview", verb="cancel", queue="a")).doc
    sweep = await cancelled(client, f"queue=a&upto={seen['upto']}")
    assert (sweep["counted"], sweep["by"]["upto"]) == (3, seen["upto"])
    await client.enqueue(queue="a", **KEPT)
    assert "counted" not in await cancelled(client, "queue=a")


async def test_a_sweep_whose_last_look_finds_nothing_has_come_to_its_end(client: Client) -> None:
    await client.enqueue_many(1_000, queue="a", **KEPT)
    await client.enqueue(queue="b")
    sweep = await cancelled(client, "queue=a")
    assert (sweep["state"], sweep["progress"]) == ("done", 1)
    for _ in range(2):
        await client.make("dead", queue="c")
    assert (await client.post("/jobs/redrive?queue=c", {"limit": 1})).doc == {"redriven": 1}
    (latest,) = (await client.get("/sweeps/ended", limit=1)).doc["sweeps"]
    assert (latest["verb"], latest["state"]) == ("requeue", "done")


async def test_a_reset_forgets_sweeps_and_too_long_reasons_are_refused(client: Client) -> None:
    await client.enqueue(queue="a", **KEPT)
    await cancelled(client, "queue=a")
    assert (await client.send("POST", f"/jobs/cancel?reason={'r' * 501}")).status == 400
    await client.send("POST", "/reset")
    assert (await client.get("/sweeps/ended")).doc == {"sweeps": []}


@pytest.fixture
async def site(site: Site, tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    if "shop" in request.node.name:
        await site.restart(keys=write_keys(tmp_path / "keys"))
    return site


async def test_a_shop_sees_and_undoes_the_sweeps_of_its_own_queues(site: Site, wire: Wire) -> None:
    async with client_of(site, wire, "root") as root, client_of(site, wire, "shop") as shop:
        await root.enqueue(queue="shop-a", **KEPT)
        whole = await cancelled(root, "queue=shop-a")
        await root.enqueue(queue="shop-a", **KEPT)
        own = await cancelled(shop, "queue=shop-a")
        assert (whole["actor"], own["actor"]) == ("root", "shop")
        assert (await shop.get("/sweeps/ended")).doc["sweeps"] == [own]
        assert (await undo(shop, whole)).status == 404
        assert (await undo(shop, own)).doc["undone"] == 1
        (undone, *_) = (await root.get("/audit")).doc["actions"]
        assert (undone["path"], undone["actor"]) == (f"/sweeps/{own['id']}/undo", "shop")
        assert undone["answer"] == {"undone": 1, "kept": {}, "gone": 0}
        async with client_of(site, wire, "only-read") as reader:
            assert (await undo(reader, whole)).status == 403


async def test_the_cancellation_of_one_job_can_be_undone_if_that_was_asked_for(
    client: Client,
) -> None:
    job = await client.enqueue(queue="a", priority=7, **KEPT)
    before = await client.job(job["id"])
    done = (await client.post(f"/jobs/{job['id']}/cancel", {"undo": True})).doc
    assert (done["status"], int(done["undo"]) > 0) == ("cancelled", True)
    (sweep,) = (await client.get("/sweeps/ended")).doc["sweeps"]
    assert (sweep["id"], sweep["by"], sweep["state"]) == (done["undo"], {"id": [job["id"]]}, "done")
    await client.site.crash()
    assert (await undo(client, sweep)).doc == {"undone": 1, "kept": {}, "gone": 0}
    assert await client.job(job["id"]) == before
    assert (await undo(client, sweep)).status == 409


async def test_one_cancelled_job_leaves_no_sweep_behind_unless_it_can_be_undone(
    client: Client,
) -> None:
    quiet = await client.enqueue(**KEPT)
    assert "undo" not in (await client.post(f"/jobs/{quiet['id']}/cancel", {})).doc
    gone = await client.enqueue(retention={"dead_ms": 0})
    done = (await client.post(f"/jobs/{gone['id']}/cancel", {"undo": True})).doc
    assert (done["status"], "undo" in done) == ("cancelled", False)
    running = await client.in_flight(queue="b", **KEPT)
    refused = await client.post(f"/jobs/{running['id']}/cancel", {"undo": True})
    assert refused.status == 409
    assert (await client.get("/sweeps/ended")).doc["sweeps"] == []
