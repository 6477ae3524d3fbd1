"""Jobs that die: to a dead-letter queue and back, revived one by one or by filter; sweeps."""

import asyncio
from typing import Any

import pytest

from .client import Client, Doc, Reply, ids, without_body
from .test_settings import put
from .test_waiting import waiting


async def die(client: Client, count: int = 1, *, queue: str = "q", **fields: object) -> list[str]:
    """The ids of jobs that a worker has killed."""
    made = await client.enqueue_many(count, queue=queue, **fields)
    stream = await client.take(queue=queue, prefetch=count)
    assert ids(await stream.jobs(count)) == made
    for job_id in made:
        await client.fail(job_id, kill=True, message=f"of {job_id}")
    await stream.close()
    return made


async def redrive(client: Client, query: str = "", **body: object) -> int:
    reply = await client.post(f"/jobs/redrive{query}", body)
    assert reply.status == 200, reply.doc
    count: int = reply.doc["redriven"]
    return count


async def test_a_dying_job_moves_to_the_dead_letter_queue_and_begins_anew(client: Client) -> None:
    backoff = {"exponent": 0, "base_ms": 0, "jitter_ms": 0}
    await put(client, "q", dead_letter="dlq", retry_limit=1, backoff=backoff)
    await put(client, "dlq", retry_limit=1, backoff=backoff)
    job = await client.enqueue(queue="q", payload={"n": 1}, priority=7)
    stream = await client.take(prefetch=1)
    for attempt in (1, 2):
        assert (await stream.job())["attempts"] == attempt - 1
        failed = await client.fail(job["id"], message=f"no {attempt}")
        client.site.clock.advance(1_000)
    assert (failed["queue"], failed["status"], failed["attempts"]) == ("dlq", "ready", 0)
    assert (failed["origin"], failed["reason"]) == ("q", "exhausted")
    assert "purge_at" not in failed

    taken = await stream.job()
    assert (taken["id"], taken["queue"], taken["payload"]) == (job["id"], "dlq", {"n": 1})
    assert (taken["origin"], taken["priority"]) == ("q", 7)
    # Its tries are as many as those of a new job; its records go on counting.
    assert (await client.fail(job["id"], message="no 3"))["status"] == "scheduled"
    client.site.clock.advance(1_000)
    await stream.job()
    dead = await client.fail(job["id"], message="no 4")
    assert (dead["queue"], dead["status"], dead["attempts"]) == ("dlq", "dead", 2)
    errors = (await client.get(f"/jobs/{job['id']}/errors")).doc["errors"]
    assert [(e["attempt"], e["message"]) for e in errors] == [(n, f"no {n}") for n in (1, 2, 3, 4)]
    assert await client.count() == 1


async def test_those_who_wait_for_a_job_learn_that_it_is_dead_and_nothing_of_its_dead_letter(
    client: Client,
) -> None:
    await put(client, "q", dead_letter="dlq")
    job = await client.in_flight(queue="q")
    path = f"/jobs/{job['id']}/result"
    async with waiting(client, job["id"]) as (waiter,):
        await client.fail(job["id"], kill=True, message="no such mailbox")
        told = await waiter
    assert (told.status, told.doc["status"]) == (200, "dead")
    assert told.doc["error"]["message"] == "no such mailbox"
    assert (await client.job(job["id"]))["reason"] == "killed"
    # Whoever asks later learns the same, however the dead letter fares.
    stream = await client.take(queue="dlq", prefetch=1)
    assert (await stream.job())["id"] == job["id"]
    assert (await client.get(path)).doc == told.doc
    await client.post(f"/jobs/{job['id']}/success", {"result": 5, "retention": {"completed_ms": 9}})
    assert (await client.get(path)).doc == told.doc
    assert (await client.job(job["id"]))["result"] == 5


async def test_a_dead_letter_that_goes_home_has_an_outcome_again(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    (job_id,) = await die(client)
    assert await redrive(client, "?queue=dlq") == 1
    stream = await client.take(queue="q", prefetch=1)
    assert (await stream.job())["id"] == job_id
    assert (await client.get(f"/jobs/{job_id}/result")).doc == {"status": "in_flight"}
    await client.post(f"/jobs/{job_id}/success", {"result": 5, "retention": {"completed_ms": 9}})
    assert (await client.get(f"/jobs/{job_id}/result")).doc == {"status": "completed", "result": 5}


async def test_the_origin_is_where_a_job_began_however_far_it_came(client: Client) -> None:
    await put(client, "q", dead_letter="b")
    await put(client, "b", dead_letter="c")
    (job_id,) = await die(client)
    stream = await client.take(queue="b", prefetch=1)
    assert (await stream.job())["queue"] == "b"
    moved = await client.fail(job_id, kill=True)
    assert (moved["queue"], moved["origin"]) == ("c", "q")
    await stream.close()
    assert await redrive(client, "?queue=c") == 1
    back = await client.job(job_id)
    assert (back["queue"], back["status"]) == ("q", "ready")
    assert "origin" not in back
    assert "reason" not in back


async def test_settings_that_go_leave_no_job_behind(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    (lettered,) = await die(client)
    await client.delete("/queues/q/settings")
    (dead,) = await die(client)
    assert (await client.job(dead))["status"] == "dead"
    assert (await client.job(lettered))["queue"] == "dlq"
    # A dead-letter queue is a name: that it has no jobs or settings is no error.
    await client.delete("/jobs")
    await put(client, "q", dead_letter="never-used")
    await die(client)
    assert (await client.get("/queues")).doc == {"queues": ["never-used"]}


@pytest.mark.parametrize("scope", ["queued", "active", "exists"])
async def test_a_dead_letter_gives_up_its_key_and_takes_it_back_at_home(
    client: Client, scope: str
) -> None:
    unique: dict[str, Any] = {"unique_key": "k", "unique_while": scope}
    await put(client, "q", dead_letter="dlq")
    (job_id,) = await die(client, 1, **unique)
    new = await client.enqueue(queue="q", payload="new", on_conflict="replace_payload", **unique)
    assert not new["duplicate"]
    # No delivery of the dead letter, and no return of it, takes the key.
    stream = await client.take(queue="dlq", prefetch=1)
    assert (await stream.job())["payload"] != "new"
    await stream.close()
    await client.until(job_id, status="ready")
    assert (await client.get("/jobs/by-key", key="k")).doc["id"] == new["id"]
    home = await client.send("POST", f"/jobs/{job_id}/retry?home=true")
    assert (home.status, home.headers["zq-error"]) == (409, "key_taken")
    assert await redrive(client, "?queue=dlq") == 0
    await client.delete(f"/jobs/{new['id']}")
    assert await redrive(client, "?queue=dlq") == 1
    assert (await client.get("/jobs/by-key", key="k")).doc["id"] == job_id


async def test_a_group_goes_on_where_a_job_has_left_it(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    first, second, third = await client.enqueue_many(3, queue="q", group="g")
    stream = await client.take(prefetch=9)
    assert (await stream.job())["id"] == first
    await client.fail(first, kill=True)
    # The next of the group, and in the other queue the one that has come there.
    assert {job["id"] for job in await stream.jobs(2)} == {first, second}
    await client.fail(second, kill=True)
    assert (await stream.job())["id"] == third
    assert (await client.job(second))["status"] == "ready"
    await client.succeed(first)
    assert (await stream.job())["id"] == second


async def test_the_time_to_live_is_that_of_the_queue_that_a_job_comes_to(client: Client) -> None:
    await put(client, "q", dead_letter="dlq", ttl_ms=50)
    await put(client, "dlq", ttl_ms=900)
    (job_id,) = await die(client)
    assert (await client.job(job_id))["expires_at"] == client.site.now + 900


async def test_a_dead_job_is_revived_where_it_died(client: Client) -> None:
    (job_id,) = await die(client, retry_limit=0)
    assert (await client.job(job_id))["reason"] == "killed"
    reply = await client.send("POST", f"/jobs/{job_id}/retry")
    assert reply.status == 200
    assert (reply.doc["status"], reply.doc["attempts"]) == ("ready", 0)
    assert (reply.doc["queue"], reply.doc["ready_at"]) == ("q", client.site.now)
    assert not reply.doc.keys() & {"purge_at", "reason", "origin"}
    assert without_body(await client.job(job_id)) == reply.doc
    assert len((await client.get(f"/jobs/{job_id}/errors")).doc["errors"]) == 1
    stream = await client.take(prefetch=1)
    assert (await stream.job())["id"] == job_id
    assert (await client.fail(job_id))["attempts"] == 1
    assert (await client.get(f"/jobs/{job_id}/errors/2")).status == 200


@pytest.mark.parametrize("status", ["scheduled", "ready", "in_flight", "completed", "cancelled"])
async def test_only_a_dead_job_is_revived(client: Client, status: str) -> None:
    job_id = await client.make(status)
    before = await client.job(job_id)
    reply = await client.send("POST", f"/jobs/{job_id}/retry")
    assert (reply.status, reply.headers["zq-error"]) == (409, "not_dead")
    assert reply.doc["status"] == status
    assert await client.job(job_id) == before


async def test_what_is_not_there_is_not_revived(client: Client) -> None:
    (job_id,) = await die(client, retention={"dead_ms": 10})
    client.site.clock.advance(10)
    for unknown in (job_id, "unknown"):
        assert (await client.send("POST", f"/jobs/{unknown}/retry")).status == 404
    assert (await client.send("GET", f"/jobs/{job_id}/retry")).status == 405
    assert (await client.send("GET", "/jobs/redrive")).status == 405


async def test_a_revived_job_takes_its_key_back_unless_another_has_it(client: Client) -> None:
    unique: Doc = {"unique_key": "k", "unique_while": "active"}
    (first,) = await die(client, **unique)
    second = await client.enqueue(**unique)
    await client.send("POST", f"/jobs/{first}/retry")
    assert (await client.get("/jobs/by-key", key="k")).doc["id"] == second["id"]
    await client.delete("/jobs")
    (third,) = await die(client, **unique)
    await client.send("POST", f"/jobs/{third}/retry")
    assert (await client.get("/jobs/by-key", key="k")).doc["id"] == third


async def test_dead_jobs_are_redriven_by_filter_once(client: Client) -> None:
    dead = await die(client, 5, type="mail")
    others = await die(client, 2, queue="r", type="sms")
    await client.enqueue(queue="z")
    assert await redrive(client, "?type=mail", limit=2) == 2
    assert [job["status"] for job in await client.jobs(id=",".join(dead))] == [
        *["ready"] * 2,
        *["dead"] * 3,
    ]
    assert await redrive(client, "?queue=q") == 3
    assert await redrive(client, "?queue=q") == 0
    assert await client.count(status="dead") == 2
    # Without a filter, all that is dead; a body is not needed.
    assert (await client.send("POST", "/jobs/redrive")).doc == {"redriven": 2}
    assert await redrive(client) == 0
    assert {(await client.job(job))["queue"] for job in others} == {"r"}


async def test_jobs_of_a_dead_letter_queue_go_back_to_where_they_came_from(client: Client) -> None:
    for queue in ("a", "b"):
        await put(client, queue, dead_letter="dlq")
    first, second = await die(client, 2, queue="a")
    (third,) = await die(client, queue="b", payload={"n": 3})
    own = await client.enqueue(queue="dlq")
    # Who names no queue means the dead.
    assert await redrive(client) == 0
    assert await redrive(client, "?queue=dlq&filter=.n%3F%3D%3D3") == 1
    assert await redrive(client, "?queue=dlq&status=scheduled") == 0
    assert await redrive(client, "?queue=dlq") == 2
    queues = {job["id"]: job["queue"] for job in await client.jobs()}
    assert queues == {first: "a", second: "a", third: "b", own["id"]: "dlq"}
    assert await redrive(client, "?queue=dlq,a,b") == 0


async def test_a_redrive_that_cannot_be_is_refused(client: Client) -> None:
    (job_id,) = await die(client)
    for query, body, status in (
        ("?status=completed", {}, 422),
        ("?status=in_flight", {}, 422),
        ("?status=dead,cancelled", {}, 422),
        ("?color=red", {}, 400),
        ("?filter=", {}, 400),
        ("", {"limit": 0}, 400),
        ("", {"limit": "5"}, 400),
        ("", {"most": 5}, 400),
        ("", [], 400),
    ):
        reply = await client.post(f"/jobs/redrive{query}", body)
        assert reply.status == status, (query, body)
        assert reply.error
    assert (await client.job(job_id))["status"] == "dead"


async def slow_sweep(client: Client) -> tuple[asyncio.Task[Reply], Doc]:
    """A cancellation of so many jobs that it can be looked at, and how it is shown then."""
    for _ in range(2):
        await client.enqueue_many(5_000, queue="q")
    request = asyncio.create_task(client.send("POST", "/jobs/cancel?queue=q&type=test"))
    while True:
        sweeps = (await client.get("/sweeps")).doc["sweeps"]
        if sweeps and sweeps[0]["changed"]:
            return request, sweeps[0]
        assert not request.done()


async def test_a_sweep_is_shown_while_it_runs_and_can_be_stopped(client: Client) -> None:
    assert (await client.get("/sweeps")).doc == {"sweeps": []}
    request, sweep = await slow_sweep(client)
    assert (sweep["verb"], sweep["started_at"]) == ("cancel", client.site.now)
    assert sweep["by"]["queue"] == ["q"]
    assert sweep["by"]["status"] == ["scheduled", "ready"]
    assert sweep["changed"] in range(1_000, 10_000, 1_000)
    assert 0 < sweep["progress"] < 1
    assert (await client.delete(f"/sweeps/{sweep['id']}")).status == 204
    reply = await request
    assert reply.status == 200
    changed = reply.doc["cancelled"]
    assert sweep["changed"] <= changed < 10_000
    assert await client.count(status="cancelled") == changed
    assert (await client.get("/sweeps")).doc == {"sweeps": []}
    for unknown in (sweep["id"], "99", "x"):
        gone = await client.delete(f"/sweeps/{unknown}")
        assert (gone.status, gone.headers["zq-error"]) == (404, "sweep_not_found")


@pytest.mark.parametrize("fan_out", [None, ["dlq@a", "dlq@b"]], ids=["one queue", "targets"])
async def test_a_dead_letter_brings_no_unique_key_into_its_queue(
    client: Client, fan_out: list[str] | None
) -> None:
    """A job there that has this key by itself neither keeps it out nor becomes it."""
    await put(client, "q", dead_letter="dlq")
    await put(client, "dlq", fan_out=fan_out)
    key: Doc = {"unique_key": "k", "unique_in": "queue", "unique_while": "active"}
    await client.enqueue(queue="dlq", payload="own", **key)
    await die(client, payload="dead", **key)
    for queue in fan_out or ["dlq"]:
        found = [job["payload"] for job in await client.jobs(queue=queue, status="ready")]
        assert sorted(found) == ["dead", "own"]
    await client.enqueue(queue="q", **key)
    assert await client.count(queue="q", status="ready") == 1


async def test_a_new_target_gets_dead_letters_without_their_unique_keys(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    await put(client, "dlq", fan_out=["dlq@a"])
    key: Doc = {"unique_key": "k", "unique_in": "queue"}
    await client.enqueue(queue="dlq@b", payload="own", **key)
    await die(client, payload="dead", **key)
    added = await client.send("PUT", "/queues/dlq/targets/dlq%40b")
    assert (added.status, added.doc) == (201, {"added": 1})
    found = [job["payload"] for job in await client.jobs(queue="dlq@b", status="ready")]
    assert sorted(found) == ["dead", "own"]


async def test_a_replayed_dead_letter_takes_no_unique_key(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    await put(client, "dlq", retention={"completed_ms": 60_000})
    (letter,) = await die(client, unique_key="k")
    stream = await client.take(queue="dlq")
    await client.succeed((await stream.job())["id"])
    await stream.close()
    assert (await client.post("/queues/dlq/replay", {})).doc == {"replayed": 1}
    assert (await client.enqueue(queue="q", unique_key="k"))["id"] != letter
    assert await client.count(queue="q", status="ready") == 1
