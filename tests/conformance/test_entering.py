"""Stored jobs that enter a queue: the rules that new jobs meet there hold for them too."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from .batches import batched
from .batches import put as put_batched
from .client import Client, Doc, new_job
from .crons import entry
from .test_dead_letter import die, redrive
from .test_schemas import ORDER
from .test_schemas import put as put_schema
from .test_settings import put

Way = Callable[[Client], Awaitable[int]]
"""Brings one job into the queue `q`, or is refused. Returns the status of the answer."""


async def by_patch(client: Client) -> int:
    job = await client.enqueue(queue="elsewhere")
    return (await client.patch(f"/jobs/{job['id']}", {"queue": "q"})).status


async def by_patch_of_all(client: Client) -> int:
    await client.enqueue(queue="elsewhere")
    reply = await client.patch("/jobs?queue=elsewhere", {"queue": "q"})
    return 200 if reply.doc["patched"] else 409


async def by_retry(client: Client) -> int:
    (dead,) = await client.jobs(queue="q", status="dead")
    return (await client.send("POST", f"/jobs/{dead['id']}/retry")).status


async def by_redrive(client: Client) -> int:
    return 200 if await redrive(client, "?queue=q") else 409


async def by_retry_at_home(client: Client) -> int:
    (letter,) = await client.jobs(queue="dlq")
    return (await client.send("POST", f"/jobs/{letter['id']}/retry?home=true")).status


async def by_undo(client: Client) -> int:
    sweeps = (await client.get("/sweeps/ended?limit=1")).doc["sweeps"]
    return 200 if (await client.post(f"/sweeps/{sweeps[0]['id']}/undo", {})).doc["undone"] else 409


async def nothing(client: Client) -> None:
    """No job has to be anywhere before."""


async def one_dead(client: Client) -> None:
    await die(client, queue="q")


async def one_in_the_dead_letter_queue(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    await die(client, queue="q")


async def one_cancelled(client: Client) -> None:
    await client.enqueue(queue="q")
    assert (await client.post("/jobs/cancel?queue=q", {})).doc["cancelled"] == 1


WAYS = pytest.mark.parametrize(
    ("before", "way"),
    [
        (nothing, by_patch),
        (nothing, by_patch_of_all),
        (one_dead, by_retry),
        (one_dead, by_redrive),
        (one_in_the_dead_letter_queue, by_retry_at_home),
        (one_cancelled, by_undo),
    ],
    ids=lambda part: part.__name__,
)


@WAYS
async def test_no_way_leads_into_a_full_queue(
    client: Client, before: Callable[[Client], Awaitable[None]], way: Way
) -> None:
    await before(client)
    await client.patch("/queues/q/settings", {"max_depth": 1})
    first = await client.enqueue(queue="q", payload="first")
    assert await way(client) in (409, 429)
    assert await client.count(queue="q", status="ready") == 1
    await client.delete(f"/jobs/{first['id']}")
    assert await way(client) == 200
    assert await client.count(queue="q", status="ready") == 1


@WAYS
async def test_no_way_leads_round_the_schema_of_a_queue(
    client: Client, before: Callable[[Client], Awaitable[None]], way: Way
) -> None:
    await before(client)
    await put_schema(client, "q")
    assert await way(client) in (409, 422)
    assert await client.count(queue="q", status="ready") == 0
    await client.delete("/queues/q/schema")
    assert await way(client) == 200
    assert await client.count(queue="q", status="ready")


@WAYS
async def test_no_way_leads_round_the_schema_of_a_target(
    client: Client, before: Callable[[Client], Awaitable[None]], way: Way
) -> None:
    await before(client)
    await client.patch("/queues/q/settings", {"fan_out": ["q@a", "q@b"]})
    await put_schema(client, "q@b")
    assert await way(client) in (409, 422)
    assert await client.count(queue="q@a") == 0
    await client.delete("/queues/q@b/schema")
    assert await way(client) == 200


async def test_a_job_that_comes_back_to_its_own_target_is_not_measured_by_the_others(
    client: Client,
) -> None:
    await one_dead(client)
    await client.patch("/queues/q/settings", {"fan_out": ["q@a", "q"]})
    await put_schema(client, "q@a")
    assert await by_retry(client) == 200
    assert (await client.count(queue="q"), await client.count(queue="q@a")) == (1, 0)


@WAYS
async def test_a_job_of_a_queue_with_a_schema_comes_back_if_its_payload_matches(
    client: Client, before: Callable[[Client], Awaitable[None]], way: Way
) -> None:
    await before(client)
    await put_schema(client, "q", {**ORDER, "fields": []})
    assert await way(client) in (409, 422), "null is no object"
    await put_schema(client, "q", "null")
    assert await way(client) == 200


async def test_a_change_by_filter_counts_what_it_leaves_out(client: Client) -> None:
    await put_schema(client, "q")
    for payload in ({"n": 1}, {"n": "one"}, {"n": 2, "long": "x" * 2_000}, {"long": "x" * 2_000}):
        await client.enqueue(queue="elsewhere", payload=payload)
    moved = await client.patch("/jobs?queue=elsewhere", {"queue": "q"})
    assert moved.doc == {"patched": 2, "kept": {"schema_mismatch": 2}}
    left = await client.jobs(queue="elsewhere")
    refused = await client.patch(f"/jobs/{left[0]['id']}", {"queue": "q"})
    assert (refused.status, refused.headers["zq-error"]) == (422, "schema_mismatch")
    assert 'field "n" must be of type int' in refused.error
    assert (await client.patch("/jobs?queue=q", {"priority": 1})).doc == {"patched": 2}


async def test_a_job_is_dead_where_it_is_if_it_does_not_match_the_schema_of_its_dead_letter_queue(
    client: Client,
) -> None:
    await put(client, "q", dead_letter="dlq")
    await put_schema(client, "dlq")
    (id,) = await die(client)
    dead: Doc = await client.job(id)
    assert (dead["queue"], dead["status"], dead["reason"]) == ("q", "dead", "killed")


async def test_a_sweep_leaves_to_its_next_slice_what_a_transaction_cannot_compare(
    client: Client,
) -> None:
    await put_schema(client, "q")
    jobs = [{"n": 1, "long": "x" * 700_000}, {"n": "one", "long": "x" * 700_000}, {"n": 3}]
    for payload in [*jobs, *jobs]:
        await client.enqueue(queue="elsewhere", payload=payload)
    moved = await client.patch("/jobs?queue=elsewhere", {"queue": "q"})
    assert moved.doc == {"patched": 4, "kept": {"schema_mismatch": 2}}


LONG = "x" * 1_100_000


async def test_a_payload_of_any_length_is_compared_with_the_schema_of_its_new_queue(
    client: Client,
) -> None:
    await put_schema(client, "q")
    good = await client.enqueue(queue="elsewhere", payload={"n": 1, "long": LONG})
    bad = await client.enqueue(queue="elsewhere", payload={"n": "one", "long": LONG})
    assert (await client.patch(f"/jobs/{good['id']}", {"queue": "q"})).status == 200
    refused = await client.patch(f"/jobs/{bad['id']}", {"queue": "q"})
    assert (refused.status, refused.headers["zq-error"]) == (422, "schema_mismatch")
    assert 'field "n" must be of type int' in refused.error


async def test_dying_jobs_go_to_their_dead_letter_queue_however_long_their_payloads_are(
    client: Client,
) -> None:
    await put(client, "q", dead_letter="dlq")
    await put_schema(client, "dlq")
    await client.enqueue(queue="q", payload={"n": "one", "long": LONG}, priority=1)
    for n in range(3):
        await client.enqueue(queue="q", payload={"n": n, "long": LONG})
    stream = await client.take(queue="q", prefetch=4)
    for job in await stream.jobs(4):
        await client.fail(job["id"], kill=True)
    assert await client.count(queue="dlq", status="ready") == 3
    assert await client.count(queue="q", status="dead") == 1


async def test_a_long_payload_comes_to_a_target_and_by_a_schedule_if_it_matches(
    client: Client,
) -> None:
    await put_schema(client, "q@a")
    await put(client, "q", fan_out=["q@a"])
    await client.enqueue(queue="q", payload={"n": 1, "long": LONG})
    refused = await client.post("/jobs", new_job(queue="q", payload={"n": "one", "long": LONG}))
    assert (refused.status, refused.headers["zq-error"]) == (422, "schema_mismatch")
    assert await client.count(queue="q@a", status="ready") == 1


async def test_a_schedule_is_refused_whose_job_does_not_fit_its_queue_or_a_target(
    client: Client,
) -> None:
    await put_schema(client, "q")
    await put_schema(client, "t@a")
    await put(client, "t", fan_out=["t@a", "t@b"])
    for queue in ("q", "t"):
        bad, good = ({"queue": queue, "payload": {"n": n}} for n in ("one", 1))
        refused = await client.call(
            "PUT", "/crons/g", {"entries": [entry("good", job=good), entry(job=bad)]}
        )
        assert (refused.status, refused.headers["zq-error"]) == (422, "schema_mismatch")
        assert refused.error.startswith("entries[1]: payload does not match")
        refused = await client.call("PUT", "/crons/g/entries/e", entry(job=bad))
        assert (refused.status, refused.headers["zq-error"]) == (422, "schema_mismatch")
        assert (await client.call("PUT", "/crons/g/entries/e", entry(job=good))).status == 200
    refused = await client.call(
        "PUT", "/crons/g", {"entries": [entry(job=batched({"n": 1}, queue="t"))]}
    )
    assert refused.status == 422 and "cannot have a batch" in refused.error


async def test_a_fold_makes_no_payload_that_the_queue_of_its_host_does_not_take(
    client: Client,
) -> None:
    await put_schema(client, "q")
    rule = {"fold": "$new + {n: (if $new.good and $existing.n then 1 else null end)}"}
    host = await put_batched(client, {"n": 1, "good": True}, queue="q", **rule)
    replies = await asyncio.gather(
        *(
            client.post("/jobs", batched({"n": 2, "good": good}, queue="q", **rule))
            for good in (True, False, True)
        )
    )
    assert [reply.status for reply in replies] == [200, 422, 200]
    assert "payload does not match" in replies[1].error
    assert (await client.job(host["id"]))["payload"] == {"n": 1, "good": True}


@WAYS
async def test_every_way_leads_to_all_targets_of_a_queue(
    client: Client, before: Callable[[Client], Awaitable[None]], way: Way
) -> None:
    await before(client)
    await client.patch("/queues/q/settings", {"fan_out": ["q@a", "q@b"]})
    assert await way(client) == 200
    (one,) = await client.jobs(queue="q@a")
    (other,) = await client.jobs(queue="q@b")
    assert one["payload"] == other["payload"]
    assert await client.count(queue="q", status="ready") == 0


async def test_a_dead_letter_comes_to_all_targets_and_dies_in_each_of_them(client: Client) -> None:
    letter = {"dead_letter": "dlq", "dead_letter_after": 1}
    await put(client, "dlq", fan_out=["dlq@a", "dlq@b"])
    job = await client.in_flight(queue="q", **letter)
    await client.fail(job["id"])
    stream = await client.take(queue="dlq@a,dlq@b", prefetch=2)
    for taken in await stream.jobs(2):
        assert taken["origin"] == "q"
        failed = await client.fail(taken["id"])
        assert (failed["queue"], failed["status"]) == (taken["queue"], "dead")
    assert await client.count() == 2


async def test_a_job_is_dead_where_it_is_if_its_dead_letter_queue_is_full(client: Client) -> None:
    await put(client, "q", dead_letter="dlq")
    await put(client, "dlq", max_depth=1)
    first, second = await die(client, 2)
    assert (await client.job(first))["queue"] == "dlq"
    dead: Doc = await client.job(second)
    assert (dead["queue"], dead["status"], dead["reason"]) == ("q", "dead", "killed")


@pytest.mark.parametrize("way", [by_retry, by_redrive])
async def test_a_job_that_comes_back_has_its_own_time_to_live_again(
    client: Client, way: Way
) -> None:
    await put(client, "q", ttl_ms=90_000)
    await die(client, ttl_ms=60_000)
    client.site.clock.advance(50_000)
    assert await way(client) == 200
    (back,) = await client.jobs(queue="q")
    assert back["expires_at"] == client.site.now + 60_000
